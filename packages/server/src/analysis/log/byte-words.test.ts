import assert from "node:assert";
import { expect, test } from "vitest";
import { hashOf, isSame, LastView, Literal, viewOf } from "./byte-words.js";

const bytes = Buffer.from(Array.from({ length: 64 }, (_, i) => 0x20 + ((i * 37) % 90)));
const view = viewOf(bytes);

test("a literal matches where all its bytes match, and nowhere else; an empty or very short one never matches", () => {
  for (let length = 0; length <= 20; length++) {
    const literal = new Literal();
    literal.set(view, 7, 7 + length);
    for (let changed = -1; changed < length; changed++) {
      const other = Buffer.from(bytes);
      if (changed >= 0) other[7 + changed]! ^= 1;
      assert.equal(
        literal.isAt(viewOf(other), 7),
        changed < 0 && length >= 4,
        `${length} bytes, changed at ${changed}`,
      );
    }
    expect(literal.isAt(viewOf(bytes.subarray(0, 7 + length - 1)), 7)).toBe(false);
  }
});

test("a literal that is set again matches only the new piece", () => {
  const literal = new Literal();
  for (const [from, end] of [
    [0, 30],
    [3, 9],
    [1, 2],
    [10, 50],
  ] as const) {
    literal.set(view, from, end);
    for (let at = 0; at < 40; at++) assert.equal(literal.isAt(view, at), at === from && end - from >= 4);
  }
});

test("two pieces are equal if all their bytes are, and then so are their hashes", () => {
  for (let length = 0; length <= 20; length++) {
    for (let changed = -1; changed < length; changed++) {
      const other = Buffer.concat([Buffer.from("xyz"), bytes]);
      if (changed >= 0) other[3 + 5 + changed]! ^= 1;
      assert.equal(isSame(view, 5, viewOf(other), 8, length), changed < 0);
      assert.equal(hashOf(view, 5, 5 + length) === hashOf(viewOf(other), 8, 8 + length), changed < 0);
    }
  }
});

test("a view covers the requested bytes", () => {
  const views = new LastView();
  for (const one of [bytes, bytes.subarray(3), bytes, bytes.subarray(0, 5)]) {
    expect(views.of(one).byteLength).toBe(one.length);
    expect(views.of(one).getUint8(0)).toBe(one[0]);
  }
});
