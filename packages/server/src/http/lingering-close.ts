/**
 * Lingering close: closes a connection whose peer may still be sending, without losing our answer. Closing a socket with unread bytes sends
 * a TCP reset, which can overtake the answer. So we half-close first, discard further input, and destroy the socket after a second.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

const LONGEST_LINGER_MS = 1_000;

/** For a response with `Connection: close` whose request was not read to the end. */
export function lingerAfter(response: ServerResponse): void {
  const { socket, req } = response;
  if (socket === null) return;
  // Node calls this to end the connection after the response.
  socket.destroySoon = () => linger(socket);
  response.once("finish", () => req.resume());
}

export function linger(socket: Socket): void {
  if (socket.writable) socket.end();
  const insist = setTimeout(() => socket.destroy(), LONGEST_LINGER_MS);
  socket.once("close", () => clearTimeout(insist));
}
