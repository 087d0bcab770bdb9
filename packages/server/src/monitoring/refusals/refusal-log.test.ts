import type { DecidedRequest, Decision } from "sluice";
import { expect, test } from "vitest";
import { keyDigest, RefusalLog, type RefusalValues } from "./refusal-log.js";

function logOf(values: RefusalValues = "shown") {
  const clock = { nowMs: 1_000_000 };
  const log = new RefusalLog(
    () => ["user"],
    values,
    () => clock.nowMs,
  );
  const refuse = (user: string, more: Record<string, string> = {}): void =>
    log.add(
      {
        allowed: false,
        checks: [{ rule: "api", mode: "enforce", allowed: false, reason: "limit" }],
      } as never as Decision,
      { attributes: { user, ...more }, checks: [{ key: `{user=${user}}:api:w` }] } as never as DecidedRequest,
    );
  return { log, clock, refuse };
}

test("at most one refusal per key and second is kept, and the last five per key", () => {
  const { log, clock, refuse } = logOf();
  for (let second = 0; second < 8; second++) {
    for (let i = 0; i < 50; i++) refuse("ann", { path: `/${second}` });
    clock.nowMs += 1_000;
  }
  expect(log.quarter().map(({ attributes }) => attributes.path)).toEqual(["/7", "/6", "/5", "/4", "/3"]);
});

test("at most 100 refusals per second and the newest 300 per quarter hour are kept, however many keys are refused", () => {
  const { log, clock, refuse } = logOf();
  for (let second = 0; second < 10; second++) {
    for (let i = 0; i < 200; i++) refuse(`${second}-${i}`);
    clock.nowMs += 1_000;
  }
  const kept = log.quarter();
  expect(kept).toHaveLength(300);
  expect(new Set(kept.map(({ atMs }) => atMs)).size).toBe(3);
  log.endQuarter();
  expect(log.quarter()).toEqual([]);
});

test("hidden values are not stored, and the key is still found by its digest", () => {
  const { log, refuse } = logOf("hidden");
  refuse("secret-ann", { path: "/secret" });
  expect(JSON.stringify(log.quarter())).not.toContain("secret");
  expect(log.quarter()[0]).toMatchObject({
    rule: "api",
    attributes: { user: "", path: "" },
    digest: keyDigest("api", ["user"], { user: "secret-ann" }),
  });
  const none = logOf("off");
  none.refuse("ann");
  expect(none.log.quarter()).toEqual([]);
});
