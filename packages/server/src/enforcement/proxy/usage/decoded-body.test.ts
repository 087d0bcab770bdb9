import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { type Coding, DecodedBody } from "./decoded-body.js";

const body = Buffer.concat([Buffer.from("plain text, then noise "), randomBytes(200_000)]);
const encoders: [string, Coding, (bytes: Buffer) => Buffer][] = [
  ["gzip", "gzip", (bytes) => gzipSync(bytes)],
  [
    "two members of gzip",
    "gzip",
    (bytes) => Buffer.concat([gzipSync(bytes.subarray(0, 9)), gzipSync(bytes.subarray(9))]),
  ],
  ["zlib's deflate", "deflate", (bytes) => deflateSync(bytes)],
  ["bare deflate", "deflate", (bytes) => deflateRawSync(bytes)],
  ["bare deflate, stored", "deflate", (bytes) => deflateRawSync(bytes, { level: 0 })],
  ["Brotli", "br", (bytes) => brotliCompressSync(bytes)],
];

test.each(encoders)("%s is decoded, however it is split", async (_, coding, encode) => {
  const encoded = encode(body);
  for (const sizes of [[encoded.length], [1, 0, 1, 7, encoded.length]]) {
    const decoded = new DecodedBody(coding);
    let at = 0;
    for (const size of sizes) {
      decoded.write(encoded.subarray(at, at + size));
      at += size;
    }
    decoded.end();
    expect((await buffer(decoded)).equals(body)).toBe(true);
  }
});

test.each(encoders)("a truncated %s body is an error", async (_, coding, encode) => {
  const encoded = encode(body);
  const decoded = new DecodedBody(coding);
  decoded.end(encoded.subarray(0, encoded.length - 10));
  await expect(buffer(decoded)).rejects.toThrow(/unexpected end|invalid|code/i);
});

test.each<Coding>(["gzip", "deflate", "br"])("no bytes in %s are an empty body", async (coding) => {
  const decoded = new DecodedBody(coding);
  decoded.end();
  expect(await buffer(decoded)).toHaveLength(0);
});

test("a small body that decodes to a large one respects backpressure", async () => {
  const decoded = new DecodedBody("gzip");
  decoded.end(gzipSync(Buffer.alloc(50_000_000)));
  await once(decoded, "readable");
  let longest = 0;
  let bytes = 0;
  for await (const chunk of decoded as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    longest = Math.max(longest, decoded.readableLength);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(bytes).toBe(50_000_000);
  expect(longest).toBeLessThan(1_000_000);
});
