/**
 * Ends a connection whose peer may still be sending, so that it reads our answer. A socket that is closed with unread bytes is reset, and the
 * reset may overtake the answer: so our side ends first, what still comes is read and dropped, and after a second it is over.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

const LONGEST_LINGER_MS = 1_000;

/** For a response with `Connection: close` whose request has not been read whole. */
export function lingerAfter(response: ServerResponse): void {
  const { socket, req } = response;
  if (socket === null) return;
  // Node calls this to end the connection once the response is sent.
  socket.destroySoon = () => linger(socket);
  response.once("finish", () => req.resume());
}

export function linger(socket: Socket): void {
  if (socket.writable) socket.end();
  const insist = setTimeout(() => socket.destroy(), LONGEST_LINGER_MS);
  socket.once("close", () => clearTimeout(insist));
}
