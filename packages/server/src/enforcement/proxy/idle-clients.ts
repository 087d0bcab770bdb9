/**
 * Closes connections that are idle because of the client: it sends no request, does not finish one, or does not read its response.
 * A client that waits for its turn (`maxWait`) or for the upstream is not idle: a model may think for minutes before its first byte. The turn
 * and the upstream timeout cover these cases.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface Exchange {
  readonly client: IncomingMessage;
  readonly response: ServerResponse;
  /** Before that, the client waits for this proxy, which may not have read its body. */
  isDecided: boolean;
}

/** Returns a function to call for each request before it is decided. */
export function closeIdleClients(server: Server, idleTimeoutMs: number): (exchange: Exchange) => void {
  /** The last exchange of each connection: earlier ones are answered first. */
  const asked = new WeakMap<Socket, Exchange>();
  server.setTimeout(idleTimeoutMs);
  server.on("timeout", (socket: Socket) => {
    // Restarts the socket's idle timer, as transferred bytes do.
    if (awaitsAnswer(asked.get(socket), socket)) socket.setTimeout(idleTimeoutMs);
    else socket.destroy();
  });
  return (exchange) => {
    asked.set(exchange.client.socket, exchange);
  };
}

/** Buffered bytes mean that the client does not read. */
function awaitsAnswer(exchange: Exchange | undefined, socket: Socket): boolean {
  if (exchange === undefined || socket.writableLength > 0) return false;
  const { client, response, isDecided } = exchange;
  return (client.complete || !isDecided) && !response.writableEnded && !response.destroyed;
}
