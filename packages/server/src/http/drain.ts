/**
 * Ends an HTTP server without losing an answer, once its accept queue is empty (`accept-queue.ts`).
 * New connections are refused, and every answer on an open one says `Connection: close`, so that each ends after the request that is on
 * its way; those that stay idle for a moment are then closed. While the queue empties, answers do not say it: their clients would
 * connect again, and be in the queue. (A lame duck says it: it still accepts.)
 * Node's own `close()` would close idle ones at once, and a request that was already sent on one of them would be lost.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { nextLook } from "./accept-queue.js";

/** Longer than a client on the same continent takes to send its next request on a busy connection. */
const IDLE_LOOKS = 15;

const openSockets = new WeakMap<Server, Set<Socket>>();
const closing = new WeakSet<Server>();

/** Whether the server accepts no more connections: its answers must then say `Connection: close`. */
export function isClosing(server: Server): boolean {
  return closing.has(server);
}

/** From its creation on, so that connections which never send anything, or were upgraded, can be ended too: Node forgets both. */
export function trackConnections(server: Server): Server {
  const sockets = new Set<Socket>();
  openSockets.set(server, sockets);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return server;
}

export function openConnections(server: Server): number {
  return openSockets.get(server)?.size ?? 0;
}

/** Once its port is closed. Resolves when every connection has ended. */
export async function drain(server: Server, { timeoutMs }: { timeoutMs: number }): Promise<void> {
  closing.add(server);
  const sockets = openSockets.get(server) ?? new Set();
  const startMonotonicMs = performance.now();
  for (let looks = 1; sockets.size > 0; looks++) {
    await nextLook();
    if (performance.now() - startMonotonicMs > timeoutMs) for (const socket of sockets) socket.destroy();
    else if (looks > IDLE_LOOKS) {
      server.closeIdleConnections();
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    }
  }
  // Ends Node's timer that looks for late peers; the error says that the server is not running, which is the point.
  server.close(() => undefined);
}
