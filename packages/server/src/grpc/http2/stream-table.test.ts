import fc from "fast-check";
import { expect, test } from "vitest";
import { INITIAL_WINDOW } from "./protocol.js";
import type { Sender } from "./sender.js";
import { Stream } from "./stream.js";
import { StreamTable } from "./stream-table.js";

const sender = { initialWindow: INITIAL_WINDOW } as Sender;
const streamOf = (id: number) => new Stream(id, sender);
const idsOf = (streams: Iterable<Stream>) => Array.from(streams, ({ id }) => id).sort((a, b) => a - b);

/** Many more openings than ends, then the reverse: the table grows and shrinks. */
const steps = (opens: number) =>
  fc.array(fc.record({ opens: fc.nat(99).map((n) => n < opens), step: fc.nat(2 ** 12), pick: fc.nat() }), {
    maxLength: 400,
  });

test("it holds what a Map would hold, while streams open with rising ids and end in any order", () => {
  fc.assert(
    fc.property(steps(80), steps(20), (opening, ending) => {
      const table = new StreamTable();
      const expected = new Map<number, Stream>();
      let lastId = 1;
      for (const { opens, step, pick } of [...opening, ...ending]) {
        if (opens) {
          lastId += 2 * (1 + step);
          const stream = streamOf(lastId);
          table.add(stream);
          expected.set(lastId, stream);
        } else {
          const id = [...expected.keys()][pick % Math.max(1, expected.size)] ?? pick;
          expect(table.delete(id)).toBe(expected.delete(id));
          expect([table.has(id), table.delete(id)]).toEqual([false, false]);
        }
        expect(table.size).toBe(expected.size);
      }
      for (const [id, stream] of expected) expect(table.get(id)).toBe(stream);
      expect(idsOf(table.all())).toEqual([...expected.keys()]);
    }),
    { numRuns: 300 },
  );
});

test("ids with equal low bits, equal high bits, or in a row are found alike", () => {
  for (const idOf of [(i: number) => 1 + i * 2 ** 16, (i: number) => 2 ** 30 + 1 + 2 * i, (i: number) => 1 + 2 * i]) {
    const table = new StreamTable();
    const ids = Array.from({ length: 1_000 }, (_, i) => idOf(i));
    for (const id of ids) table.add(streamOf(id));
    expect(ids.every((id) => table.get(id)?.id === id)).toBe(true);
    for (const id of ids.slice(1)) table.delete(id);
    expect(idsOf(table.all())).toEqual([ids[0]]);
  }
});
