import { expect, test } from "vitest";
import { createLog } from "../log.js";
import { Heartbeat } from "./heartbeat.js";
import { MemorySharedState } from "./memory-shared-state.js";

const clock = { nowMs: 1_000 };
const openState = () =>
  MemorySharedState.open({ dataFolder: undefined, log: createLog("silent"), now: () => clock.nowMs });
const well = { store: "up", rulesVersion: 7, sharedVersion: 7, rulesLoaded: true } as const;

test("every instance reads the heartbeats of all, and one that stopped is gone after ten seconds", async () => {
  const shared = await openState();
  const one = new Heartbeat({ shared, instance: "one", state: () => well });
  const two = new Heartbeat({ shared, instance: "two", state: () => ({ ...well, store: "degraded" }) });
  await one.beat(clock.nowMs);
  await two.beat(clock.nowMs);
  expect((await one.readAll()).map(({ instance, store }) => [instance, store])).toEqual([
    ["one", "up"],
    ["two", "degraded"],
  ]);
  clock.nowMs += 9_000;
  await one.beat(clock.nowMs);
  clock.nowMs += 1_000;
  expect((await two.readAll()).map(({ instance }) => instance)).toEqual(["one"]);
});

test("a report includes since when the instance has its version", async () => {
  let rulesVersion = 7;
  const heartbeat = new Heartbeat({
    shared: await openState(),
    instance: "one",
    state: () => ({ ...well, rulesVersion }),
  });
  expect(heartbeat.report(1_000)).toMatchObject({ rulesVersion: 7, versionSinceMs: 1_000 });
  expect(heartbeat.report(5_000)).toMatchObject({ rulesVersion: 7, versionSinceMs: 1_000, atMs: 5_000 });
  rulesVersion = 8;
  expect(heartbeat.report(6_000)).toMatchObject({ rulesVersion: 8, versionSinceMs: 6_000 });
});

test("a report of an older release counts as healthy, and one that cannot be parsed is skipped", async () => {
  const shared = await openState();
  const keep = { was: undefined, keepMs: 60_000 };
  await shared.swap("instance:old", { ...keep, now: JSON.stringify({ atMs: 5, store: "up", rulesVersion: 3 }) });
  await shared.swap("instance:odd", { ...keep, now: "{" });
  const heartbeat = new Heartbeat({ shared, instance: "one", state: () => well });
  expect(await heartbeat.readAll()).toEqual([
    { atMs: 5, store: "up", rulesVersion: 3, rulesLoaded: true, versionSinceMs: 5 },
  ]);
});
