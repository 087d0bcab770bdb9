/**
 * A port as a server sees it: a source of connections until it is closed. The listener is this process's own (`waiting-listener.ts`), or
 * belongs to the first process, which hands connections to workers.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { openConnections } from "./drain.js";

export interface Port {
  readonly number: number;
  /** Hands over the connections that wait, and all later ones. */
  serve(take: (socket: Socket) => void): void;
  /** Resolves when no more connections come; all earlier ones have been handed over. */
  close(): Promise<void>;
}

/** Attaches an HTTP or HTTPS server to a port. Enforces the server's `maxConnections`. */
export function servePort(server: Server, port: Port): void {
  // Node starts its timer for timed-out requests on "listening". Our server never listens: its connections come from elsewhere.
  server.emit("listening");
  port.serve((socket) => {
    if (openConnections(server) >= (server.maxConnections ?? Number.POSITIVE_INFINITY)) socket.destroy();
    else server.emit("connection", socket);
  });
}
