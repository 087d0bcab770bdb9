import { expect, test } from "vitest";
import type { InstanceReport } from "../../instance/heartbeat.js";
import { propagationStuck } from "./propagation.js";

const report = (given: Partial<InstanceReport> = {}): InstanceReport => ({
  instance: "i1",
  atMs: 0,
  rulesVersion: 7,
  sharedVersion: 7,
  versionSinceMs: 0,
  rulesLoaded: true,
  store: "up",
  eventLoopUtilisation: 0,
  ...given,
});

test("an instance is behind when another has had a newer version for ten seconds", () => {
  const reports = [report(), report({ instance: "i2", sharedVersion: 8, versionSinceMs: 1_000 })];
  expect(propagationStuck(reports, 10_999)).toEqual([]);
  expect(propagationStuck(reports, 11_000)).toMatchObject([
    { subject: "propagation-stuck:i1", severity: "warning", value: 7, expected: 8, level: "fire" },
  ]);
});

test("an instance without rules is critical at once, with the reason", () => {
  const [found] = propagationStuck([report({ rulesLoaded: false, configurationError: "disk full" })], 0);
  expect(found).toMatchObject({ severity: "critical" });
  expect(found!.summary).toBe("instance i1 has no rules: nothing is limited there: disk full");
});

test("versions from a rules file are local to an instance, so they are not compared", () => {
  const { sharedVersion: _, ...fromFile } = report({ instance: "i2" });
  expect(propagationStuck([fromFile, report({ versionSinceMs: 0 })], 60_000)).toEqual([]);
});

test("without instances there is no finding", () => {
  expect(propagationStuck([], 0)).toEqual([]);
});
