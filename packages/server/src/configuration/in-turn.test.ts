import { expect, test } from "vitest";
import { InTurn } from "./in-turn.js";

test("tasks run one at a time in the order of the calls, and a failure rejects for its own caller only", async () => {
  const inTurn = new InTurn();
  const done: string[] = [];
  const slow = inTurn.run(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    done.push("slow");
  });
  const failing = inTurn.run(async () => {
    done.push("failing");
    throw new Error("no");
  });
  const quick = inTurn.run(async () => done.push("quick"));
  await expect(failing).rejects.toThrow("no");
  await slow;
  expect(await quick).toBe(3);
  await inTurn.settled();
  expect(done).toEqual(["slow", "failing", "quick"]);
});
