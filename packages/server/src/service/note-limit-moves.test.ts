import type { createLimiter, LimiterEvents } from "sluice";
import { expect, test } from "vitest";
import { createLog } from "../log.js";
import { noteLimitMoves } from "./note-limit-moves.js";

type Listener = (...args: LimiterEvents["limit"]) => void;

test("changes are summed per rule, without those of other instances, and written when the service closes", async () => {
  let listener: Listener | undefined;
  const limiter = {
    on: (_: string, added: Listener) => {
      listener = added;
    },
    off: () => undefined,
  } as unknown as ReturnType<typeof createLimiter>;
  const written: unknown[] = [];
  const repository = { record: async (entry: unknown) => void written.push(entry) } as never;
  const noted = noteLimitMoves({ limiter, repository, log: createLog("silent") });
  for (const [from, to] of [
    [100, 70],
    [70, 49],
    [49, 54],
  ] as const) {
    listener!({ rule: "tuned", from, to, utilisation: 1, leads: true, alone: false });
  }
  listener!({ rule: "tuned", from: 54, to: 1, utilisation: 1, leads: false, alone: false });
  await noted.close();
  const details = { moves: 3, lowest: 49, highest: 100, from: 100, to: 54 };
  expect(written).toEqual([{ actor: "sluice", action: "limit.moved", target: "tuned", details }]);
});
