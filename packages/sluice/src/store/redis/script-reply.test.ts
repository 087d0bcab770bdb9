import { expect, test } from "vitest";
import { arrayIn, integerIn, isMalformed, malformed, numberAt, numbersNamed, textOrNothing } from "./script-reply.js";

/** The code and the message of what is thrown. */
function failure(read: () => unknown): string {
  try {
    return `no failure: ${JSON.stringify(read())}`;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message.replace(/; check what .*/, "")}`;
  }
}

test("integers are read from numbers, strings, buffers and bigints, and from nothing else", () => {
  expect([7, "-7", Buffer.from("7"), 7n].map(integerIn)).toEqual([7, -7, 7, 7]);
  for (const value of [null, undefined, "", [], [7], " 7", "7 ", "0x7", "7.5", "1e3", "NaN", true, {}]) {
    expect(integerIn(value), JSON.stringify(value)).toBeNaN();
  }
});

test("named elements may be fractions, and more may follow", () => {
  expect(numbersNamed([1, "2.5", ".5e1", "rest"], "a", "b", "c")).toEqual([1, 2.5, 5]);
  expect(numbersNamed([], ...[])).toEqual([]);
});

test.each([
  [() => arrayIn("x\u001b", "an array of things"), 'an array of things, got a text of 2 characters, "x\\u001b"'],
  [() => numbersNamed(null, "now_us", "given"), "an array of now_us, given, got null"],
  [() => numbersNamed([1], "now_us", "given"), "given, a number, as element 1 of 1, got nothing"],
  [() => numbersNamed([1, [2]], "now_us", "given"), "given, a number, as element 1 of 2, got an array of 1"],
  [() => numberAt([1, Number.POSITIVE_INFINITY], 1), "a number as element 1 of 2, got Infinity"],
  [() => numberAt([1], 1), "a number as element 1 of 1, got nothing"],
  [() => textOrNothing([1]), "a text or nothing, got an array of 1"],
  [() => textOrNothing({}), "a text or nothing, got an object"],
])("the message has what came and what was expected, case %#", (read, words) => {
  expect(failure(read)).toBe(`store-unavailable Redis: malformed reply to a script: expected ${words}`);
});

test("GET returns a string or nothing", () => {
  expect([null, undefined, "", "x", Buffer.from("x")].map(textOrNothing)).toEqual([undefined, undefined, "", "x", "x"]);
});

test("a message is short and printable however long or strange the reply, and the script may have run", () => {
  for (const got of [
    "\u202e\n".repeat(100_000),
    Buffer.alloc(100_000, 0x9b),
    new Error("\r\nforged line"),
    10n ** 400n,
  ]) {
    const error = malformed("a number", got);
    expect(error.message).toMatch(/^[\x20-\x7e…]{1,700}$/);
    expect(error.mayHaveRun).toBe(true);
    expect(isMalformed(error)).toBe(true);
  }
  expect(isMalformed(new Error("other"))).toBe(false);
});
