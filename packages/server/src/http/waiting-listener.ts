/**
 * A listener that can open before its service has started: connections wait until it serves. A restart in place then keeps clients
 * waiting for the moment that a start takes, where a closed port would refuse them.
 * Small on purpose: it is loaded and opened before the rest of the service is even read.
 */
import { createServer, type Server, type Socket } from "node:net";
import { type ListenAddress, listen } from "./listen.js";

/** An Envoy opens one connection for each of its threads. */
const MOST_CONNECTIONS = 4_096;
/** A start that hangs must not hold clients: an open port that never answers costs each request its whole timeout. */
const WAIT_AT_MOST_MS = 5_000;

export class WaitingListener {
  readonly #server: Server;
  readonly #waiting = new Set<Socket>();
  #hasWaitedLong = false;
  #serve: ((socket: Socket) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor({ mostConnections = MOST_CONNECTIONS } = {}) {
    this.#server = createServer({ noDelay: true, pauseOnConnect: true }, (socket) => this.#take(socket));
    this.#server.maxConnections = mostConnections;
  }

  /** Resolves with the port. */
  async listen(address: ListenAddress, { waitAtMostMs = WAIT_AT_MOST_MS } = {}): Promise<number> {
    this.#timer = setTimeout(() => this.#giveUp(), waitAtMostMs);
    this.#timer.unref();
    return await listen(this.#server, address);
  }

  /** Hands over the connections that wait, and every one that comes. */
  serve(onConnection: (socket: Socket) => void): void {
    clearTimeout(this.#timer);
    this.#serve = onConnection;
    for (const socket of this.#waiting) {
      socket.off("error", ignore);
      if (!socket.destroyed) handOver(socket, onConnection);
    }
    this.#waiting.clear();
  }

  /** Takes no more connections. Those that were never served are reset. */
  close(): void {
    clearTimeout(this.#timer);
    if (this.#server.listening) this.#server.close();
    this.#resetWaiting();
  }

  #take(socket: Socket): void {
    if (this.#serve !== undefined) handOver(socket, this.#serve);
    else if (this.#hasWaitedLong) socket.resetAndDestroy();
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

/** Until here nothing was read: what clients sent is in the kernel. Reading begins with the next turn, when its reader is there. */
function handOver(socket: Socket, onConnection: (socket: Socket) => void): void {
  socket.read(0);
  onConnection(socket);
}

function ignore(): void {}
