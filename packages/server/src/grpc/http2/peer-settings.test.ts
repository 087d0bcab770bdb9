import { expect, test } from "vitest";
import { readSettings } from "./peer-settings.js";
import { settingIds } from "./protocol.js";

function read(...settings: (readonly [number, number])[]) {
  const bytes = Buffer.alloc(settings.length * 6);
  for (const [i, [id, value]] of settings.entries()) {
    bytes.writeUInt16BE(id, i * 6);
    bytes.writeUInt32BE(value, i * 6 + 2);
  }
  return readSettings({ type: 4, flags: 0, streamId: 0, bytes, from: 0, to: bytes.length });
}

test("the last initial window size wins, and settings that do not concern us are ignored", () => {
  const { initialWindowSize, headerTableSize } = settingIds;
  expect(read([initialWindowSize, 1], [headerTableSize, 7], [0xbeef, 9], [initialWindowSize, 5])).toEqual({
    initialWindow: 5,
  });
  expect(read()).toEqual({ initialWindow: undefined });
});

test.each([
  [settingIds.enablePush, 2],
  [settingIds.initialWindowSize, 2 ** 31],
  [settingIds.maxFrameSize, 16_383],
  [settingIds.maxFrameSize, 2 ** 24],
])("setting %i of %i is refused", (id, value) => {
  expect(() => read([id, value])).toThrow();
});

test("a SETTINGS frame whose size is no multiple of six is refused", () => {
  expect(() => readSettings({ type: 4, flags: 0, streamId: 0, bytes: Buffer.alloc(7), from: 0, to: 7 })).toThrow(
    "size",
  );
});
