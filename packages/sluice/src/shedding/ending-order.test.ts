import fc from "fast-check";
import { expect, test } from "vitest";
import { EndingOrder } from "./ending-order.js";

test("whatever is added or removed, the next to end comes first", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined })), (steps) => {
      const order = new EndingOrder<{ endsAtMs: number }>();
      const model: number[] = [];
      // A number is added; nothing removes the next.
      for (const endsAtMs of steps) {
        if (endsAtMs === undefined) {
          order.removeNext();
          model.shift();
        } else {
          order.add({ endsAtMs });
          model.push(endsAtMs);
          model.sort((a, b) => a - b);
        }
        expect(order.next?.endsAtMs).toBe(model[0]);
      }
    }),
  );
});

test("in a flood in any order, each item costs a logarithmic number of comparisons", () => {
  for (const direction of [1, -1]) {
    let reads = 0;
    const order = new EndingOrder<{ endsAtMs: number }>();
    const endingAt = (atMs: number) => ({
      get endsAtMs() {
        reads++;
        return atMs;
      },
    });
    for (let i = 0; i < 10_000; i++) order.add(endingAt(direction * i));
    for (let i = 0; i < 10_000; i++) order.removeNext();
    // Two reads for each of 14 levels as it is added, and four as it leaves; in a sorted list it would be ten thousand.
    expect(reads / 10_000).toBeLessThan(6 * 14);
  }
});
