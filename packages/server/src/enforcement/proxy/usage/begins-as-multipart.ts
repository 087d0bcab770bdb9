/**
 * Whether a body is what its content type `multipart/…` says, by its first bytes. Such bodies pass unread, because files that are uploaded
 * hold no call. But servers that parse JSON whatever the content type says (Ollama) would take a call out of a body that only
 * claims to be multipart, and no limit would have seen its model.
 * In: a request whose body nobody has read. The body is whole afterwards.
 */
import { once } from "node:events";
import type { Readable } from "node:stream";

/** The first boundary; some clients send a line end before it. A preamble, which RFC 2046 allows, is sent by none. */
const firstBoundary = /^(?:\r\n)?--/;
const MOST_BYTES = 4;

/** Undefined if the client went away. */
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

/** Resolves when there is more to read, or there will never be. */
async function more(client: Readable): Promise<void> {
  const left = new AbortController();
  const { signal } = left;
  const events = ["readable", "end", "close"].map((event) => once(client, event, { signal }));
  await Promise.race(events).catch(() => undefined);
  left.abort();
  await Promise.allSettled(events);
}
