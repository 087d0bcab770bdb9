import { deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { UnreadableMessage } from "./message-reader.js";
import { inflated } from "./read-message.js";

const mostBytes = 2 ** 20;

test.each([
  ["gzip", gzipSync],
  ["deflate", deflateSync],
])("a message may be compressed with %s", (encoding, compress) => {
  expect(inflated(compress(Buffer.from("hello")), { encoding, mostBytes }).toString()).toBe("hello");
});

test("a compressed message may inflate to 64 KiB, or to sixteen times its size", () => {
  const few = gzipSync(Buffer.alloc(65_536));
  expect(inflated(few, { encoding: "gzip", mostBytes })).toHaveLength(65_536);
  const text = Array.from({ length: 100_000 }, (_, i) => (i * i * 7_919) % 999_983).join(" ");
  const many = gzipSync(text);
  expect(text.length / many.length).toBeLessThan(16);
  expect(inflated(many, { encoding: "gzip", mostBytes }).toString()).toBe(text);
});

test.each([
  ["a bomb", "gzip", gzipSync(Buffer.alloc(65_537)), 8],
  ["a message above the most", "gzip", gzipSync(Buffer.alloc(mostBytes + 1)), 8],
  ["no gzip", "gzip", Buffer.of(7), 8],
  ["an encoding that nobody knows", "br", Buffer.of(7), 12],
])("%s ends the call", (_what, encoding, bytes, code) => {
  try {
    inflated(bytes, { encoding, mostBytes });
    expect.unreachable();
  } catch (error) {
    expect((error as UnreadableMessage).status.code).toBe(code);
  }
});
