import { expect, test } from "vitest";
import { HeaderDecoder } from "./decode-headers.js";
import { encodeHeaders } from "./encode-headers.js";
import type { HeaderField } from "./header-field.js";
import type { RequestHead } from "./request-head.js";

function decoded(block: Buffer): string[] {
  const fields: string[] = [];
  const head = { add: ({ name, value }: HeaderField) => void fields.push(`${name}: ${value}`) };
  new HeaderDecoder().decode(block, head as unknown as RequestHead);
  return fields;
}

test("encoded headers decode to the same fields, long values included", () => {
  for (const length of [0, 1, 126, 127, 128, 254, 255, 300, 5_000]) {
    const value = "v".repeat(length);
    expect(decoded(encodeHeaders({ "grpc-message": value }))).toEqual([`grpc-message: ${value}`]);
  }
  expect(decoded(encodeHeaders({ a: "b" }, 200))).toEqual([":status: 200", "a: b"]);
  expect(decoded(encodeHeaders({}, 415))).toEqual([":status: 415"]);
});
