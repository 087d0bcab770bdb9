import { expect, test } from "vitest";
import { decodeHuffman } from "./huffman.js";

const decode = (hex: string): string => {
  const bytes = Buffer.from(hex, "hex");
  return decodeHuffman(bytes, 0, bytes.length);
};

test.each([
  ["f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"],
  ["a8eb10649cbf", "no-cache"],
  ["25a849e95ba97d7f", "custom-key"],
  ["25a849e95bb8e8b4bf", "custom-value"],
  ["6402", "302"],
  ["aec3771a4b", "private"],
  ["d07abe941054d444a8200595040b8166e082a62d1bff", "Mon, 21 Oct 2013 20:13:21 GMT"],
  ["9d29ad171863c78f0b97c8e9ae82ae43d3", "https://www.example.com"],
  ["", ""],
])("%s is %s (RFC 7541, appendix C)", (hex, text) => {
  expect(decode(hex)).toBe(text);
});

test.each([
  ["more padding than seven bits", "a8eb10649cbfff"],
  ["padding of zeroes", "a8eb10649cb0"],
  ["the end-of-string symbol", "ffffffff"],
])("%s is refused", (_what, hex) => {
  expect(() => decode(hex)).toThrow(RangeError);
});
