import fc from "fast-check";
import { expect, test } from "vitest";
import { HeaderDecoder } from "./decode-headers.js";
import type { HeaderField } from "./header-field.js";
import { ConnectionError } from "./protocol.js";
import type { RequestHead } from "./request-head.js";

function decoded(decoder: HeaderDecoder, hex: string): string[] {
  const fields: string[] = [];
  const head = { add: ({ name, value }: HeaderField) => void fields.push(`${name}: ${value}`) };
  decoder.decode(Buffer.from(hex.replaceAll(" ", ""), "hex"), head as unknown as RequestHead);
  return fields;
}

const first = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const second = [...first, "cache-control: no-cache"];
const third = [
  ":method: GET",
  ":scheme: https",
  ":path: /index.html",
  ":authority: www.example.com",
  "custom-key: custom-value",
];

test.each([
  [
    "plain (C.3)",
    [
      "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
      "8286 84be 5808 6e6f 2d63 6163 6865",
      "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ],
  ],
  [
    "Huffman (C.4)",
    [
      "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
      "8286 84be 5886 a8eb 1064 9cbf",
      "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ],
  ],
])("three requests on one connection, %s", (_what, blocks) => {
  const decoder = new HeaderDecoder();
  expect(blocks.map((block) => decoded(decoder, block))).toEqual([first, second, third]);
});

test("fields that are not to be added to the table are not (C.2.2, C.2.3)", () => {
  const decoder = new HeaderDecoder();
  expect(decoded(decoder, "040c 2f73 616d 706c 652f 7061 7468")).toEqual([":path: /sample/path"]);
  expect(decoded(decoder, "1008 7061 7373 776f 7264 0673 6563 7265 74")).toEqual(["password: secret"]);
  expect(() => decoded(decoder, "be")).toThrow("an index that is not in the table");
});

test.each([
  ["index 0", "80"],
  ["an index that nobody has added", "bf"],
  ["a number without end", "ffffffffffffffff"],
  ["a number that is cut off", "ff"],
  ["a string that is cut off", "400a637573"],
  ["a value that is missing", "4003666f6f"],
  ["a table larger than offered", "3fe21f"],
  ["a table's size behind a field", "8220"],
  ["a wrong Huffman code", "4084ffffffff00"],
])("%s ends the connection", (_what, hex) => {
  expect(() => decoded(new HeaderDecoder(), hex)).toThrow(ConnectionError);
});

test("arbitrary bytes are decoded or refused, and never read beyond their end", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 8 }), (blocks) => {
      const decoder = new HeaderDecoder();
      try {
        for (const block of blocks) {
          let bytes = 0;
          const head = {
            add({ size }: HeaderField) {
              bytes += size;
            },
          };
          decoder.decode(Buffer.from(block), head as unknown as RequestHead);
          // A field has at least one byte, and names at most what the table holds.
          expect(bytes).toBeLessThanOrEqual(block.length * 4_200);
        }
      } catch (error) {
        expect(error).toBeInstanceOf(ConnectionError);
      }
    }),
    { numRuns: 2_000 },
  );
});
