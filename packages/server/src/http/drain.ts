/**
 * Graceful shutdown of an HTTP server, after its accept queue has drained (`accept-queue.ts`): no answer is lost.
 * New connections are refused and every answer carries `Connection: close`, so each connection ends after its request in flight; idle ones
 * are closed after a grace period. While the accept queue drains, answers do not carry it yet: their clients would reconnect and land in
 * the queue again. (A lame duck does send it: it still accepts.)
 * Node's own `close()` closes idle connections at once, and would lose a request that is already on its way.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { nextLook } from "./accept-queue.js";

/** Longer than a client on the same continent takes to send the next request on a busy connection. */
const IDLE_LOOKS = 15;

const openSockets = new WeakMap<Server, Set<Socket>>();
const closing = new WeakSet<Server>();

/** Whether the server has stopped accepting: its answers must then carry `Connection: close`. */
export function isClosing(server: Server): boolean {
  return closing.has(server);
}

/**
 * Tracks sockets from their creation, so that connections that never sent a request, or were upgraded, can be closed too: Node forgets
 * both.
 */
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

/** Call this once the port is closed. Resolves when every connection has ended. */
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
  // Only stops Node's timer for timed-out requests; the "not running" error is expected.
  server.close(() => undefined);
}
