import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { BodyHolder } from "./body-holder.js";

const LIMIT = 1_000_000;

function client(headers: Record<string, string> = {}): PassThrough & IncomingMessage {
  return Object.assign(new PassThrough(), { headers }) as unknown as PassThrough & IncomingMessage;
}

/** An unfinished body of `bytes` bytes; resolves when all of them are held. */
async function holding(holder: BodyHolder, bytes: number) {
  const body = client();
  let came = 0;
  let arrived: () => void = () => undefined;
  const all = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const held = holder.hold(body, (chunk) => {
    came += chunk.length;
    if (came === bytes) arrived();
  });
  held.catch(() => undefined);
  body.write(Buffer.alloc(bytes, "x"));
  await Promise.race([all, held]);
  return { body, held };
}

test("a body is held in blocks, however it arrives, and released once", async () => {
  const holder = new BodyHolder({ limitBytes: LIMIT });
  const body = client();
  const held = holder.hold(body, () => undefined);
  for (let i = 0; i < 200_000; i++) body.write(Buffer.from([i % 251]));
  body.end();
  const { bytes, blocks, letGo } = (await held)!;
  expect([bytes, holder.heldBytes]).toEqual([200_000, 200_000]);
  expect(blocks().length).toBeLessThanOrEqual(5);
  expect(Buffer.concat([...blocks()]).every((byte, i) => byte === i % 251)).toBe(true);
  letGo();
  letGo();
  expect([holder.heldBytes, blocks().length]).toEqual([0, 0]);
});

test("large bodies together may not exceed eight times the maximum; small ones are still accepted", async () => {
  const holder = new BodyHolder({ limitBytes: LIMIT });
  const eight = await Promise.all(Array.from({ length: 8 }, () => holding(holder, LIMIT)));
  expect(holder.heldBytes).toBe(8 * LIMIT);
  await expect(
    (await holding(holder, 100_000).catch((error) => ({ held: Promise.reject(error) }))).held,
  ).rejects.toThrow("the bodies of other requests");
  expect(holder.heldBytes).toBe(8 * LIMIT);
  const small = await holding(holder, 60_000);
  small.body.end();
  expect((await small.held)!.bytes).toBe(60_000);
  for (const { body } of eight) body.destroy(Object.assign(new Error("aborted"), { code: "ECONNRESET" }));
  expect(await Promise.all(eight.map(({ held }) => held))).toEqual(Array(8).fill(undefined));
  expect(holder.heldBytes).toBe(0);
});

test("a body that is too large is refused by its Content-Length, or when it exceeds the limit", async () => {
  const holder = new BodyHolder({ limitBytes: LIMIT });
  await expect(holder.hold(client({ "content-length": "1000001" }), () => undefined)).rejects.toThrow(
    "body: expected at most 1000000 bytes",
  );
  const body = client();
  const held = holder.hold(body, () => undefined);
  body.write(Buffer.alloc(LIMIT + 1));
  await expect(held).rejects.toThrow("body: expected at most 1000000 bytes");
  expect([holder.heldBytes, body.destroyed]).toEqual([0, false]);
});

test("a reader that refuses ends the buffering, and the connection stays open for the answer", async () => {
  const holder = new BodyHolder({ limitBytes: LIMIT });
  const body = client();
  const held = holder.hold(body, () => {
    throw new Error("no");
  });
  body.write("x");
  await expect(held).rejects.toThrow("no");
  expect(body.destroyed).toBe(false);
});
