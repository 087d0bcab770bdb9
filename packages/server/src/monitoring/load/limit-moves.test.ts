import type { LimitMove } from "sluice";
import { expect, test } from "vitest";
import { LimitMoves, MOST_MOVES } from "./limit-moves.js";

function moves(): { noted: LimitMoves; move: (given: Partial<LimitMove>) => void } {
  let listener: (move: LimitMove) => void = () => undefined;
  const limiter = { on: (_: string, given: typeof listener) => (listener = given) };
  const noted = new LimitMoves(limiter as never, "one", () => 5);
  const move = (given: Partial<LimitMove>): void =>
    listener({ rule: "r", from: 100, to: 70, utilisation: 0.9, leads: true, alone: false, ...given });
  return { noted, move };
}

test("an instance records the changes it made, not those it follows", () => {
  const { noted, move } = moves();
  move({});
  move({ leads: false });
  move({ leads: false, utilisation: undefined });
  move({ leads: false, alone: true, utilisation: undefined });
  expect(noted.list()).toEqual([
    { rule: "r", atMs: 5, from: 100, to: 70, instance: "one", alone: false, utilisation: 0.9 },
    { rule: "r", atMs: 5, from: 100, to: 70, instance: "one", alone: true },
  ]);
  expect(noted.version).toBe(2);
});

test("only the latest changes are kept", () => {
  const { noted, move } = moves();
  for (let to = 1; to <= 2 * MOST_MOVES; to++) move({ to });
  expect([noted.list().length, noted.list().at(-1)!.to]).toEqual([MOST_MOVES, 2 * MOST_MOVES]);
});
