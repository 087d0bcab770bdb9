import { expect, test } from "vitest";
import type { Check } from "../../../check.js";
import { unavailable } from "../failure.js";
import type { Guard, SingleNodeStore } from "../single-node-store.js";
import { Compensation, type Undo } from "./compensation.js";
import type { IdRecords } from "./id-records.js";
import { MovingSlots } from "./moving-slots.js";

const check = { key: "{a}1", cost: 1, live: -1, plan: { maxWaitMs: 0 } } as unknown as Check;
const undo: Undo = {
  charges: [{ check, atMs: 1_000, entryId: "e", owed: 0 }],
  id: undefined,
  attempt: "e",
  lifeMs: 60_000,
};
const LOST = unavailable("no answer", new Error("timeout"), true);
const MOVING = unavailable("an error", new Error("TRYAGAIN Multiple keys request during rehashing of slot"));

/** A node with marks, as refund.lua keeps them. Each call takes the next fate: it is done, done without an answer, or refused. */
class Node {
  readonly marks = new Set<string>();
  given = 0;

  constructor(readonly fates: ("done" | "lost" | "moving")[]) {}

  async giveBackCharges(_charges: unknown, guard: Guard): Promise<boolean> {
    return this.#run(guard, () => this.given++);
  }

  async leaveMark(guard: Guard): Promise<boolean> {
    return this.#run(guard, () => {});
  }

  #run(guard: Guard, give: () => void): boolean {
    const fate = this.fates.shift() ?? "done";
    if (fate === "moving") throw MOVING;
    const isDone = guard.kind === "mark" && this.marks.has(guard.key);
    if (guard.kind === "mark") this.marks.add(guard.key);
    if (!isDone) give();
    if (fate === "lost") throw LOST;
    return !isDone;
  }
}

async function undone(...fates: ("done" | "lost" | "moving")[]): Promise<{ given: number; lost: number }> {
  const node = new Node(fates);
  const compensation = new Compensation({
    node: node as unknown as SingleNodeStore,
    records: {} as IdRecords,
    moving: new MovingSlots(),
  });
  await compensation.undo(undo);
  await expect.poll(() => compensation.undos.pending).toBe(0);
  await compensation.close();
  return { given: node.given, lost: compensation.undos.lost };
}

test("an undo is made once, although its answer was lost and its slot moves by the next try", async () => {
  expect(await undone("lost", "done")).toEqual({ given: 1, lost: 0 });
  expect(await undone("lost", "moving", "done", "done")).toEqual({ given: 1, lost: 0 });
});

test("an undo in a slot that moves is made key by key", async () => {
  expect(await undone("moving", "done", "done")).toEqual({ given: 1, lost: 0 });
});

test("a mark whose answer was lost gives nothing back, and counts as lost", async () => {
  expect(await undone("moving", "lost")).toEqual({ given: 0, lost: 1 });
});
