/**
 * A listener that can open before its service has started: connections wait until it serves. On a restart in place, clients then wait for
 * the moment that a start takes, instead of being refused by a closed port.
 * Small on purpose: it is loaded and opened before the rest of the service is even read.
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { untilNobodyWaits, untilQueueIsEmpty } from "./accept-queue.js";
import { type ListenAddress, listen, listenOnInherited } from "./listen.js";
import type { Port } from "./port.js";

/** A start that hangs must not hold clients: an open port that never answers costs each request its full timeout. */
const WAIT_AT_MOST_MS = 5_000;
const MOST_WAITING = 4_096;

export class WaitingListener implements Port {
  readonly #server: Server;
  readonly #mostWaiting: number;
  readonly #waitAtMostMs: number;
  readonly #waiting = new Set<Socket>();
  #number = 0;
  #address: ListenAddress | undefined;
  #isInherited = false;
  #hasWaitedLong = false;
  #take: ((socket: Socket) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor({ mostWaiting = MOST_WAITING, waitAtMostMs = WAIT_AT_MOST_MS } = {}) {
    this.#mostWaiting = mostWaiting;
    this.#waitAtMostMs = waitAtMostMs;
    this.#server = createServer({ noDelay: true, pauseOnConnect: true }, (socket) => this.#accept(socket));
  }

  get number(): number {
    return this.#number;
  }

  /** The requested address, not the resolved one. */
  get address(): ListenAddress | undefined {
    return this.#address;
  }

  async listen(address: ListenAddress): Promise<this> {
    this.pause();
    this.#address = address;
    this.#number = await listen(this.#server, address);
    return this;
  }

  /** Adopts a socket opened by a supervisor. Resolves with its actual address; `standsFor` then sets the address from the settings. */
  async inherit(fd: number): Promise<AddressInfo> {
    this.#isInherited = true;
    this.pause();
    const at = await listenOnInherited(this.#server, fd);
    this.#number = at.port;
    return at;
  }

  standsFor(address: ListenAddress): this {
    this.#address = address;
    return this;
  }

  serve(take: (socket: Socket) => void): void {
    this.handOver((socket) => take(started(socket)));
  }

  /** For a server in another process: nothing is read from the connections here. */
  handOver(take: (socket: Socket) => void): void {
    clearTimeout(this.#timer);
    this.#take = take;
    for (const socket of this.#waiting) {
      socket.off("error", ignore);
      if (!socket.destroyed) take(socket);
    }
    this.#waiting.clear();
  }

  /** Makes connections wait again; on our own socket only for a bounded time. */
  pause(): void {
    this.#take = undefined;
    this.#hasWaitedLong = false;
    clearTimeout(this.#timer);
    // On an inherited socket clients wait regardless of this process.
    if (this.#isInherited) return;
    this.#timer = setTimeout(() => this.#giveUp(), this.#waitAtMostMs);
    this.#timer.unref();
  }

  /**
   * Accepts what waits in the kernel's queue, then closes. Connections that were never served are reset. An inherited socket stays open in
   * the supervisor: its queue is left to the next process.
   */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (!this.#server.listening) return;
    if (!this.#isInherited) await this.#emptyQueue();
    this.#server.close();
    this.#resetWaiting();
  }

  async #emptyQueue(): Promise<void> {
    if (this.#take !== undefined) await untilQueueIsEmpty();
    await untilNobodyWaits();
  }

  #accept(socket: Socket): void {
    if (this.#take !== undefined) this.#take(socket);
    else if (this.#hasWaitedLong || this.#waiting.size >= this.#mostWaiting) socket.resetAndDestroy();
    else {
      socket.on("error", ignore);
      socket.once("close", () => this.#waiting.delete(socket));
      this.#waiting.add(socket);
    }
  }

  #giveUp(): void {
    this.#hasWaitedLong = true;
    this.#resetWaiting();
  }

  #resetWaiting(): void {
    for (const socket of this.#waiting) socket.resetAndDestroy();
    this.#waiting.clear();
  }
}

/**
 * So far nothing has been read: the client's bytes are in the kernel. Reading starts on the next turn, when the handlers are attached; a
 * socket left explicitly paused would stay silent after an upgrade.
 */
function started(socket: Socket): Socket {
  (socket as { readableFlowing: boolean | null }).readableFlowing = null;
  socket.read(0);
  return socket;
}

function ignore(): void {}
