import assert from "node:assert";
import { expect, test, vi } from "vitest";
import { randomOf } from "../../../../../test/harness/random.js";
import { HeaderDecoder } from "./decode-headers.js";
import type { HeaderField } from "./header-field.js";
import { ConnectionError } from "./protocol.js";
import { RequestHead } from "./request-head.js";

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

test("literals without indexing are not added to the table (C.2.2, C.2.3)", () => {
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

test("a name of 4 KiB is checked once, however often a block refers to it", () => {
  const decoder = new HeaderDecoder();
  const name = "n".repeat(4_000);
  decoder.decode(Buffer.concat([Buffer.of(0x40, 127, 161, 30), Buffer.from(name), Buffer.of(0)]), new RequestHead());
  const head = new RequestHead();
  const checked = vi.spyOn(RegExp.prototype, "test");
  // Literals without indexing: entry 62 and an empty value in three bytes.
  decoder.decode(Buffer.alloc(15_000, Buffer.of(0x0f, 0x2f, 0)), head);
  const longest = checked.mock.calls.reduce((most, [text]) => Math.max(most, text.length), 0);
  checked.mockRestore();
  expect([longest, head.isTooLarge]).toEqual([0, true]);
});

const BLOCKS = 100_000;
const SEED = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);

test(`${BLOCKS} random header blocks (seed ${SEED}) are decoded or refused, and never read beyond their end`, () => {
  const random = randomOf(SEED);
  const below = (end: number): number => Math.floor(random() * end);
  const valid = [
    "828684410f7777772e6578616d706c652e636f6d",
    "8287408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    "040c2f73616d706c652f70617468",
    "100870617373776f726406736563726574",
  ];
  const bytesOf = valid.map((hex) => Buffer.from(hex, "hex"));
  const resizes = ["", "20", "3fe11f"].map((hex) => Buffer.from(hex, "hex"));
  /** Random bytes, or realistic blocks with a few bytes changed, cut or duplicated. */
  const anyBlock = (): Buffer => {
    if (random() < 0.3) return Buffer.from(Array.from({ length: below(65) }, () => below(256)));
    const parts = Array.from({ length: 1 + below(4) }, () => bytesOf[below(bytesOf.length)]!);
    const block = Buffer.concat([resizes[below(resizes.length)]!, ...parts]);
    for (let changes = below(3); changes > 0; changes--) block[below(block.length)] = below(256);
    return block.subarray(0, random() < 0.2 ? below(block.length + 1) : block.length);
  };
  let decodedBlocks = 0;
  let decoder = new HeaderDecoder();
  for (let i = 0; i < BLOCKS; i++) {
    const block = anyBlock();
    let bytes = 0;
    const head = {
      add({ size }: HeaderField) {
        bytes += size;
      },
    };
    try {
      decoder.decode(block, head as unknown as RequestHead);
      decodedBlocks++;
      // An indexed field takes at least one byte and expands to at most the size of the table.
      assert.ok(bytes <= block.length * 4_200, `${bytes} bytes of ${block.toString("hex")}`);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      // The error ended the connection: start with a new decoder.
      decoder = new HeaderDecoder();
    }
  }
  // Both outcomes occur often enough to be tested.
  expect(Math.min(decodedBlocks, BLOCKS - decodedBlocks)).toBeGreaterThan(BLOCKS / 10);
});
