/**
 * A port as its server sees it: connections come, until it is closed. The listener is this process's own (`waiting-listener.ts`), or the
 * first process's, which hands its connections to workers.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { openConnections } from "./drain.js";

export interface Port {
  readonly number: number;
  /** Takes the connections that wait, and every one that comes. */
  serve(take: (socket: Socket) => void): void;
  /** Resolves when no more connections come. All that came before have been taken. */
  close(): Promise<void>;
}

/** Lets an HTTP server, or one for HTTPS, serve a port. Its `maxConnections` holds. */
export function servePort(server: Server, port: Port): void {
  // Node starts its timer that looks for late peers when a server listens. Ours has its connections from elsewhere.
  server.emit("listening");
  port.serve((socket) => {
    if (openConnections(server) >= (server.maxConnections ?? Number.POSITIVE_INFINITY)) socket.destroy();
    else server.emit("connection", socket);
  });
}
