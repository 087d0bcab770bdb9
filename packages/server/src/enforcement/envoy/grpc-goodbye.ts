/**
 * The end of a gRPC connection, announced so that no call is lost (RFC 9113, section 6.8): a first GOAWAY names no last call, and a client
 * answers the ping behind it when it has read both. It has sent its last call by then; to wait for a fixed time instead would prolong
 * every restart.
 *
 * We write this frame to the socket ourselves. After Node's own `goaway()`, HTTP/2 ignores calls that cross it, and once no call is under
 * way it reads no further, not even the ping's answer. (nghttp2 has a shutdown notice for this purpose; Node does not offer it.)
 * Between two writes of an HTTP/2 session there are only whole frames, so ours fits in. Not so with TLS, where a second writer can end the
 * process: there the close itself tells the client which calls were not processed.
 */
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Length 8, type GOAWAY, no flags, stream 0; then the largest stream id as the last one, and NO_ERROR. */
const SHUTDOWN_NOTICE = Buffer.from("000008" + "07" + "00" + "00000000" + "7fffffff" + "00000000", "hex");
/** How long a client may take to confirm that it heard of the end. */
const HEARD_WITHIN_MS = 1_000;

/** Resolves when the client has heard of the end, or will not. Its calls are answered meanwhile. */
export async function announceEnd(session: ServerHttp2Session, socket: Socket): Promise<void> {
  if (session.destroyed || !socket.writable) return;
  socket.write(SHUTDOWN_NOTICE);
  const late = new AbortController();
  const heard = new Promise<void>((resolve) => {
    session.once("close", resolve);
    if (!session.ping(() => resolve())) resolve();
  });
  await Promise.race([heard, sleep(HEARD_WITHIN_MS, undefined, { signal: late.signal }).catch(() => undefined)]);
  late.abort();
}
