import fc from "fast-check";
import { expect, test } from "vitest";
import { JsonScanner, textOf } from "./json-scanner.js";

/** Everything that the scanner reports, as lines, and whether the document was whole. */
function scan(pieces: readonly Buffer[]): { lines: string[]; whole: boolean; mistake: string | undefined } {
  const lines: string[] = [];
  const scanner: JsonScanner = new JsonScanner({
    key: () => lines.push(`key ${scanner.path}`),
    open: (kind) => lines.push(`${kind} ${scanner.path} ${scanner.span.start}`),
    literal: (text) => lines.push(`literal ${scanner.path} ${text} ${scanner.span.start}-${scanner.span.end}`),
    string: (bytes, start) => lines.push(`string ${scanner.path} ${bytes} ${start} ${scanner.span.start}`),
  });
  for (const piece of pieces) scanner.push(piece);
  return { lines, whole: scanner.end(), mistake: scanner.mistake };
}

const bytes = (text: string) => Buffer.from(text);

function cut(whole: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (whole.length + 1)), whole.length].sort((a, b) => a - b);
  return ends.map((end, i) => whole.subarray(ends[i - 1] ?? 0, end));
}

test("values come with their paths and places", () => {
  const text = '{"a":[1,{"b":null}],"s":"x\\"y"}';
  const { lines, whole } = scan([bytes(text)]);
  expect(whole).toBe(true);
  expect(lines).toEqual([
    "object  0",
    "key a",
    "array a 5",
    "literal a/* 1 6-7",
    "object a/* 8",
    "key a/*/b",
    "literal a/*/b null 13-17",
    "key s",
    'string s 4 x\\"y 24',
  ]);
});

test("any valid JSON is accepted, and reported the same however it is split", () => {
  fc.assert(
    fc.property(fc.json(), fc.array(fc.nat(), { maxLength: 12 }), (text, places) => {
      const whole = bytes(text);
      const once = scan([whole]);
      expect(once.whole).toBe(true);
      expect(scan(cut(whole, places))).toEqual(once);
    }),
  );
});

test("it refuses exactly what JSON.parse refuses", () => {
  const fragment = fc.constantFrom(..."{}[],:\"\\/*'1-.eE+ \n", "true", "null", "NaN", '"a"', '"a":', "0", "01", "1e5");
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 10 }), (fragments) => {
      const text = fragments.join("");
      let accepted = true;
      try {
        JSON.parse(text);
      } catch {
        accepted = false;
      }
      // Escapes and control characters within strings end nothing, so they are the server's to judge.
      if (/"[^"]*(\\[^"]|[\n])/.test(text)) return;
      expect([text, scan([bytes(text)]).whole]).toEqual([text, accepted]);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ["a comment", '{"a":1/*,"a":2*/}'],
  ["single quotes", "{'a':1}"],
  ["a byte order mark", "\ufeff{}"],
  ["NaN", '{"a":NaN}'],
  ["two documents", "{}{}"],
  ["nothing", ""],
  ["an open end", '{"a":'],
])("%s is not JSON", (_what, text) => {
  expect(scan([bytes(text)]).whole).toBe(false);
});

test("UTF-16 is not JSON", () => {
  expect(scan([Buffer.from('{"a":1}', "utf16le")]).mistake).toBe('"\\u0000" at byte 1 is not expected there');
});

test("a million levels cost no memory: the first 256 are read, then the document is refused", () => {
  const { lines, mistake } = scan([Buffer.alloc(1_000_000, "[")]);
  expect(mistake).toBe("it is nested deeper than 256 levels");
  expect(lines.length).toBe(256);
});

test("a long string is reported by its length and first kilobyte, a long number not at all", () => {
  const { lines } = scan([bytes(`{"s":"${"x".repeat(5_000_000)}"}`)]);
  expect(lines[2]).toBe(`string s 5000000 ${"x".repeat(1_024)} 5`);
  expect(scan([bytes("9".repeat(2_000_000))]).mistake).toContain("is no value");
});

test("escaped keys are decoded, and slashes in keys do not make steps", () => {
  expect(scan([bytes('{"\\u0061":1}')]).lines[1]).toBe("key a");
  expect(scan([bytes('{"a/b~":1}')]).lines[1]).toBe("key a~1b~0");
  expect(scan([bytes(`{"${"k".repeat(300)}":1}`)]).lines[1]).toBe("key …");
});

test.each([
  ["an escape that JSON does not have", bytes('{"m\\odel":1}')],
  ["a control character", bytes('{"mo\tdel":1}')],
  ["a byte that is not UTF-8", Buffer.from('{"mo\xffdel":1}', "latin1")],
])("a name with %s is no JSON: a lenient parser may drop it", (_what, document) => {
  expect(scan([document])).toMatchObject({ lines: ["object  0"], whole: false });
});

test("text that is not UTF-8 has no meaning", () => {
  expect(textOf("caf\u00c3\u00a9 \\u00e9")).toBe("café é");
  expect(textOf("\u00ff")).toBeUndefined();
  expect(textOf("\\x")).toBeUndefined();
});

test("a number that the end cuts off is not reported, unless it is the whole document", () => {
  for (const text of ['{"a":12', "[12", '[{"a":[tru']) {
    const { lines, mistake } = scan([bytes(text)]);
    expect([lines.filter((line) => line.startsWith("literal")), mistake]).toEqual([[], "it ends too early"]);
  }
  expect(scan([bytes("12")])).toMatchObject({ lines: ["literal  12 0-2"], whole: true });
});

test("a scanner that was reset reads the next document from its beginning", () => {
  const seen: number[] = [];
  const scanner: JsonScanner = new JsonScanner({ literal: () => seen.push(scanner.span.start) });
  scanner.push(bytes('{"a":1'));
  scanner.reset();
  scanner.push(bytes('xx{"a":1}'), 2);
  expect([seen, scanner.end()]).toEqual([[5], true]);
});
