/** When requests are sent to Redis, which of them share a call, and what answers when a call fails. */
import { expect, test } from "vitest";
import type { Policy } from "../../algorithms/policy.js";
import type { Check } from "../../check.js";
import type { StoreReply, StoreRequest } from "../store.js";
import type { RedisCalls } from "./calls.js";
import type { NodeReach } from "./cluster/node-reach.js";
import { DecideQueue } from "./decide-queue.js";

const bucket: Policy = { stored: "token-bucket", limit: 9, capacity: 9, amount: 1, scaleMs: 1 };
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const END_MONOTONIC_MS = 7;

function request(user: string): StoreRequest {
  const check = { key: `{${user}}:r:b`, cost: 1, live: -1, plan: { policy: bucket } } as unknown as Check;
  return { checks: [check], charge: true, entryId: "", id: undefined, fingerprint: "", rulesVersion: 1 };
}

/** As decide-single.lua answers: one of each group passes, and the others, if any, share a refusal. */
function roomForOne(keys: readonly string[], args: readonly unknown[]): number[] {
  // After the one policy, each group has its policy, its cost and its size; a plain script takes none of these.
  const sizes = keys.map((_, i) => args[4 + 3 * i + 2] ?? 1);
  return [1_000, ...sizes.flatMap((size) => (size === 1 ? [1, 8, 5] : [1, 8, 5, 0, 1, 5, 1]))];
}

/** A queue whose calls are answered when the test decides, each with room for one. */
function open(reach?: NodeReach) {
  const batches: number[] = [];
  const answers: { resolve: (reply: unknown) => void; reject: (error: unknown) => void; reply: number[] }[] = [];
  const calls = {
    counts: { batchSizes: { add: (size: number) => batches.push(size) } },
    endOf: () => END_MONOTONIC_MS,
    run: (_name: string, keys: readonly string[], args: readonly unknown[]) =>
      new Promise((resolve, reject) => answers.push({ resolve, reject, reply: roomForOne(keys, args) })),
    runCrossSlot: (name: string, keys: readonly string[], args: readonly unknown[]): Promise<unknown> =>
      calls.run(name, keys, args),
  };
  const answer = async (): Promise<void> => {
    for (const { resolve, reply } of answers.splice(0)) resolve(reply);
    await turn();
  };
  const fail = async (error: unknown): Promise<void> => {
    for (const { reject } of answers.splice(0)) reject(error);
    await turn();
  };
  const queue = new DecideQueue(calls as unknown as RedisCalls, reach);
  return {
    queue,
    batches,
    answer,
    fail,
    add: (user: string) => queue.add({ request: request(user), recordKey: undefined }),
  };
}

test("a lone request leaves before the turn ends", async () => {
  const { add, answer, batches } = open();
  const made = add("a");
  await Promise.resolve();
  expect(batches).toEqual([1]);
  await answer();
  expect((await made).verdicts[0]!.remaining).toBe(8);
});

test("requests of one callback share a call", async () => {
  const { add, answer, batches } = open();
  const made = ["a", "b", "c"].map(add);
  await Promise.resolve();
  expect(batches).toEqual([3]);
  await answer();
  expect(await Promise.all(made)).toHaveLength(3);
});

test("after a round of several requests, the first of the next round waits for the others; after a lone one, it does not", async () => {
  const { add, answer, batches } = open();
  ["a", "b"].map(add);
  await Promise.resolve();
  await answer();
  // Each of them from a separate socket: promises run in between.
  for (const user of ["a", "b", "c"]) {
    void add(user);
    await Promise.resolve();
  }
  expect(batches).toEqual([2]);
  await turn();
  expect(batches).toEqual([2, 3]);
  await answer();
  void add("a");
  await turn();
  expect(batches).toEqual([2, 3, 1]);
  await answer();
  void add("a");
  await Promise.resolve();
  expect(batches).toEqual([2, 3, 1, 1]);
});

test("while a call is in flight, the next one takes along what the turn brings", async () => {
  const { add, batches } = open();
  void add("a");
  await Promise.resolve();
  for (const user of ["b", "c"]) {
    void add(user);
    await Promise.resolve();
  }
  expect(batches).toEqual([1]);
  await turn();
  expect(batches).toEqual([1, 2]);
});

const users = (count: number): string[] => Array.from({ length: count }, (_, i) => `user-${i}`);

test("part of a large round is sent ahead, unless Redis already has as much to do; every request is sent once", async () => {
  const { add, answer, batches } = open();
  const made = users(31).map(add);
  expect(batches).toEqual([]);
  made.push(...users(20).map(add));
  expect(batches).toEqual([32]);
  // 32 are in flight: from now on as many have to wait.
  made.push(...users(13).map(add));
  expect(batches).toEqual([32, 32]);
  made.push(...users(63).map(add));
  expect(batches).toEqual([32, 32]);
  await turn();
  expect(batches).toEqual([32, 32, 63]);
  await answer();
  expect(await Promise.all(made)).toHaveLength(127);
  await turn();
  expect(batches).toEqual([32, 32, 63]);
});

test("a round that was sent ahead entirely counts as a round of several: the first of the next waits", async () => {
  const { add, answer, batches } = open();
  users(32).map(add);
  expect(batches).toEqual([32]);
  await turn();
  await answer();
  void add("a");
  await Promise.resolve();
  expect(batches).toEqual([32]);
  await turn();
  expect(batches).toEqual([32, 1]);
});

test("on a cluster a round is sent as a whole: each node gets its share in one call", async () => {
  const { add, batches } = open({ of: () => "node" } as unknown as NodeReach);
  users(100).map(add);
  expect(batches).toEqual([]);
  await turn();
  expect(batches).toEqual([100]);
});

test("a call that fails rejects its requests, or lets the fallback answer, each with the call's deadline", async () => {
  const { queue, add, fail } = open();
  const error = new Error("TRYAGAIN");
  const reply = { nowMs: 5 } as StoreReply;
  const asked: unknown[] = [];
  const plain = add("a");
  const helped = queue.add({ request: request("b"), recordKey: undefined }, async (...args) => {
    asked.push(args);
    return reply;
  });
  const unhelped = queue.add({ request: request("c"), recordKey: undefined }, async () => {
    throw new Error("nobody can");
  });
  const settled = Promise.allSettled([plain, helped, unhelped]);
  await Promise.resolve();
  await fail(error);
  expect(await settled).toMatchObject([
    { status: "rejected", reason: error },
    { status: "fulfilled", value: reply },
    { status: "rejected", reason: { message: "nobody can" } },
  ]);
  expect(asked).toEqual([[request("b"), error, END_MONOTONIC_MS]]);
});
