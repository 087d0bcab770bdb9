/**
 * Graceful GOAWAY for grpc-js connections (RFC 9113, section 6.8): a first GOAWAY without a last stream id, then a PING. When the client
 * acknowledges the PING it has read the GOAWAY and has opened its last stream; a fixed wait instead would prolong every restart.
 *
 * We write the GOAWAY frame to the socket ourselves. After Node's own `goaway()`, the HTTP/2 session ignores calls that cross it, and once
 * no call is in flight it stops reading, even the PING ack. (nghttp2 has a shutdown notice for this; Node does not expose it.)
 * Node writes whole frames, so ours fits in between. Not so with TLS, where a second writer can crash the process: there the close itself
 * tells the client which calls were not processed.
 */
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Length 8, type GOAWAY, no flags, stream 0; then the largest stream id as last stream, and NO_ERROR. */
const SHUTDOWN_NOTICE = Buffer.from("000008" + "07" + "00" + "00000000" + "7fffffff" + "00000000", "hex");
/** How long a client may take to acknowledge. */
const HEARD_WITHIN_MS = 1_000;

/** Resolves when the client has acknowledged the shutdown, or timed out. Its calls are answered meanwhile. */
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
