/**
 * A listener that can open before its service has started: connections wait until it serves. A restart in place then keeps clients
 * waiting for the moment that a start takes, where a closed port would refuse them.
 * Small on purpose: it is loaded and opened before the rest of the service is even read.
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { untilNobodyWaits, untilQueueIsEmpty } from "./accept-queue.js";
import { type ListenAddress, listen, listenOnInherited } from "./listen.js";
import type { Port } from "./port.js";

/** A start that hangs must not hold clients: an open port that never answers costs each request its whole timeout. */
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

  /** As it was asked for. */
  get address(): ListenAddress | undefined {
    return this.#address;
  }

  async listen(address: ListenAddress): Promise<this> {
    this.pause();
    this.#address = address;
    this.#number = await listen(this.#server, address);
    return this;
  }

  /** A socket that a supervisor holds. Resolves with where it listens; `standsFor` then names what the settings call it. */
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

  /** To another process: nothing of a connection is read here. */
  handOver(take: (socket: Socket) => void): void {
    clearTimeout(this.#timer);
    this.#take = take;
    for (const socket of this.#waiting) {
      socket.off("error", ignore);
      if (!socket.destroyed) take(socket);
    }
    this.#waiting.clear();
  }

  /** Connections wait again: at a socket of our own for a bounded time. */
  pause(): void {
    this.#take = undefined;
    this.#hasWaitedLong = false;
    clearTimeout(this.#timer);
    // At an inherited socket clients wait whether this process starts or not.
    if (this.#isInherited) return;
    this.#timer = setTimeout(() => this.#giveUp(), this.#waitAtMostMs);
    this.#timer.unref();
  }

  /**
   * Takes what waits in the kernel's queue, then no more. Connections that were never served are reset. An inherited socket stays open
   * elsewhere: what waits in its queue is for the next process.
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
 * Until here nothing was read: what clients sent is in the kernel. Reading begins with the next turn, when its reader is there; a socket
 * that stayed paused would keep silent after an upgrade.
 */
function started(socket: Socket): Socket {
  (socket as { readableFlowing: boolean | null }).readableFlowing = null;
  socket.read(0);
  return socket;
}

function ignore(): void {}
