import { expect, test } from "vitest";
import { shortcutOf } from "./shortcut.js";

const press = (key: string, more: object = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  ...more,
});

test("Ctrl-K and Cmd-K open the palette, also in text fields", () => {
  expect(shortcutOf(press("k", { ctrlKey: true }), true)).toBe("palette");
  expect(shortcutOf(press("K", { metaKey: true }), false)).toBe("palette");
  expect(shortcutOf(press("k"), false)).toBeUndefined();
  expect(shortcutOf(press("k", { ctrlKey: true, shiftKey: true }), false)).toBeUndefined();
  expect(shortcutOf(press("k", { ctrlKey: true, altKey: true }), false)).toBeUndefined();
});

test("a slash and a question mark are text in text fields, and shortcuts elsewhere", () => {
  expect([shortcutOf(press("/"), false), shortcutOf(press("/", { shiftKey: true }), false)]).toEqual([
    "search",
    "search",
  ]);
  expect(shortcutOf(press("?", { shiftKey: true }), false)).toBe("keys");
  expect([shortcutOf(press("/"), true), shortcutOf(press("?"), true)]).toEqual([undefined, undefined]);
  expect(shortcutOf(press("/", { ctrlKey: true }), false)).toBeUndefined();
});
