/**
 * Checks by its first bytes that a body is the `multipart/…` it claims to be. Such bodies pass unparsed, because uploaded files are no
 * calls. But servers that parse JSON regardless of the content type (Ollama) would find a call in a body that only claims to be multipart,
 * and no limit would have seen its model.
 * In: a request whose body has not been read. The body is left intact.
 */
import { once } from "node:events";
import type { Readable } from "node:stream";

/** The first boundary; some clients put a line break before it. RFC 2046 allows a preamble, but no client sends one. */
const firstBoundary = /^(?:\r\n)?--/;
const MOST_BYTES = 4;

/** Undefined if the client disconnected. */
export async function beginsAsMultipart(client: Readable): Promise<boolean | undefined> {
  let start: Buffer = Buffer.alloc(0);
  for (;;) {
    const chunk = client.read() as Buffer | null;
    if (chunk !== null) start = Buffer.concat([start, chunk]);
    else if (client.readableEnded) return false;
    else if (client.destroyed) return undefined;
    if (start.length >= MOST_BYTES) {
      client.unshift(start);
      return firstBoundary.test(start.toString("latin1", 0, MOST_BYTES));
    }
    if (chunk === null) await more(client);
  }
}

/** Resolves when there is more to read, or never will be. */
async function more(client: Readable): Promise<void> {
  const left = new AbortController();
  const { signal } = left;
  const events = ["readable", "end", "close"].map((event) => once(client, event, { signal }));
  await Promise.race(events).catch(() => undefined);
  left.abort();
  await Promise.allSettled(events);
}
