import { expect, test } from "vitest";
import { createLog } from "../log.js";
import { LeaderElection } from "./leader-election.js";
import { MemorySharedState } from "./memory-shared-state.js";

test("one of two leads; the other takes over when the leader resigns, or its term expires", async () => {
  const clock = { nowMs: 0 };
  const shared = await MemorySharedState.open({
    dataFolder: undefined,
    log: createLog("silent"),
    now: () => clock.nowMs,
  });
  const [one, two] = ["one", "two"].map(
    (instance) => new LeaderElection({ shared, name: "job", instance, keepMs: 15_000 }),
  );
  expect([await one!.ask(), await two!.ask(), await one!.ask()]).toEqual(["leader", "follower", "leader"]);
  await one!.resign();
  clock.nowMs += 1;
  expect([await two!.ask(), await one!.ask()]).toEqual(["leader", "follower"]);
  clock.nowMs += 15_000;
  expect([await one!.ask(), await two!.ask()]).toEqual(["leader", "follower"]);
});

test("an instance that cannot write the shared state is alone", async () => {
  const away = () => Promise.reject(new Error("Redis: gone"));
  const shared = { read: away, readAll: away, swap: away, close: async () => undefined };
  const election = new LeaderElection({ shared, name: "job", instance: "one", keepMs: 15_000 });
  expect(await election.ask()).toBe("alone");
  await election.resign();
});
