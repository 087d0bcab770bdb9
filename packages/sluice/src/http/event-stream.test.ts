import fc from "fast-check";
import { expect, test } from "vitest";
import { EventStream } from "./event-stream.js";

/** The data of each event that a blank line ended. */
function read(pieces: readonly Buffer[]): string[] {
  const events: string[] = [];
  let data = "";
  const stream = new EventStream({
    data: (chunk, from, to) => {
      data += Buffer.from(chunk.subarray(from, to)).toString("latin1");
    },
    end: () => {
      events.push(data);
      data = "";
    },
  });
  for (const piece of pieces) stream.push(piece);
  return events;
}

const bytes = (text: string) => Buffer.from(text, "latin1");

test.each(["\n", "\r\n", "\r"])("lines may end in %j", (end) => {
  const text = ["event: x", "data: one", "data:two", "", "data:  three", "id: 4", "", ": comment", "data", "", ""].join(
    end,
  );
  expect(read([bytes(text)])).toEqual(["one\ntwo", " three", ""]);
});

test("fields whose names begin or end like data are not data", () => {
  expect(read([bytes("dat: 1\ndata2: 2\ndatab\n xdata: 3\nDATA: 4\ndata: 5\n\n")])).toEqual(["5"]);
});

test("a leading byte order mark is skipped, and no event is dispatched before its blank line", () => {
  expect(read([bytes("\u00ef\u00bb\u00bfdata: 1\n\ndata: 2\n")])).toEqual(["1"]);
});

test("events are the same however the stream is split", () => {
  const piece = fc.constantFrom(
    "data: a",
    "data:",
    "data",
    'data: {"b":1}',
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    ": c",
    "event: d",
    " ",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.array(fc.nat(), { maxLength: 20 }), (pieces, places) => {
      const whole = bytes(pieces.join(""));
      const ends = [...places.map((place) => place % (whole.length + 1)), whole.length].sort((a, b) => a - b);
      expect(read(ends.map((end, i) => whole.subarray(ends[i - 1] ?? 0, end)))).toEqual(read([whole]));
    }),
    { numRuns: 1_000 },
  );
});

test("an event's end is reported after its blank line, and marks a CR that may be half of a line end", () => {
  const ends: [number, boolean][] = [];
  const stream = new EventStream({ data: () => undefined, end: (next, byReturn) => ends.push([next, byReturn]) });
  stream.push(bytes("data: 1\n\ndata: 2\r\n\r"));
  stream.push(bytes("\ndata: 3\n\n"));
  expect(ends).toEqual([
    [9, false],
    [19, true],
    [10, false],
  ]);
});
