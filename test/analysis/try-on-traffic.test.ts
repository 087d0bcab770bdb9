/** A draft on recorded traffic through the admin API: what it answers, and that the thread which answers checks does not do the work. */
import { readFileSync } from "node:fs";
import type { Rule } from "sluice";
import { expect, test } from "vitest";
import { TrafficWorker } from "../../packages/server/dist/analysis/traffic-worker.js";
import { makeTempFolder } from "../harness/leash.js";
import { type Json, postJson, startTestService } from "../service/running-service.js";
import { record } from "./recorded-run.js";

const perUser: Rule = { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 10, window: "1h" };
const bounds = { mostLines: 500_000, mostMs: 60_000, hash: { names: [], key: "k" } };

async function served(settings: Record<string, string> = {}) {
  const service = await startTestService({ rules: [perUser], settings });
  const headers = { authorization: `Bearer ${readFileSync(service.adminTokenFile!, "utf8").trim()}` };
  const at = `${service.http}/admin/v1/rules/per-user`;
  return {
    service,
    tryDraft: (draft: Json, span = "1h") => postJson(`${at}/try?span=${span}`, draft, headers),
    suggestions: async () => {
      const answer = await fetch(`${at}/suggestions?span=10m`, { headers });
      return { status: answer.status, body: (await answer.json()) as Json };
    },
  };
}

async function traffic(http: string): Promise<void> {
  for (const [user, times] of Object.entries({ ann: 8, bob: 3, cy: 1 })) {
    for (let i = 0; i < times; i++) await postJson(`${http}/v1/check`, { attributes: { user } });
  }
}

test.each([{}, { "record-hash": "user", "record-key": "a-key-of-sixteen-letters" }])(
  "a draft is told whom it would newly refuse, and changes nothing %j",
  async (more) => {
    const { service, tryDraft, suggestions } = await served({ record: makeTempFolder("try"), ...more });
    await using _ = service;
    await traffic(service.http);
    const { status, body } = await tryDraft({ ...perUser, limit: 2 });
    expect(status).toBe(200);
    expect(body).toMatchObject({ total: 12, refusedBefore: 0, refusedAfter: 7, newlyRefused: 7, newlyAdmitted: 0 });
    expect(body.newlyRefusedKeys.map(({ refused }: Json) => refused)).toEqual([6, 1]);
    expect(body.rules).toMatchObject([
      { rule: "per-user", mode: "enforce", total: 12, refused: 7, keys: 3, keysRefused: 2, exact: true },
    ]);
    expect(body).toMatchObject({ keysNewlyRefused: 2, keysNewlyAdmitted: 0, keysExact: true });
    const sums = [0, 1, 2].map((column) => body.series.rows.reduce((sum: number, row: Json) => sum + row[column], 0));
    expect(sums).toEqual([12, 7, 0]);
    expect((await tryDraft({ ...perUser, candidate: { limit: 5 } })).body.rules).toMatchObject([
      { mode: "enforce", refused: 0 },
      { mode: "candidate", refused: 3, keys: 3, keysRefused: 1 },
    ]);
    // Another counted key: all requests share one counter of ten.
    expect((await tryDraft({ ...perUser, key: [] })).body).toMatchObject({
      newlyRefused: 2,
      keysNewlyRefused: 1,
      rules: [{ total: 12, keys: 1 }],
    });
    expect(service.rules).toEqual([perUser]);
    expect((await suggestions()).body).toMatchObject({
      source: "recording",
      keys: 3,
      p50: 3,
      max: 8,
      limits: [
        { from: "p99", limit: 10, keysTouched: 0 },
        { from: "p99.9", limit: 10, keysTouched: 0 },
        { from: "max", limit: 10, keysTouched: 0 },
      ],
    });
  },
);

test("without a recording the answer says so, and suggestions come from the history", async () => {
  const { service, tryDraft, suggestions } = await served();
  await using _ = service;
  const { status, body } = await tryDraft(perUser);
  expect([status, body.code]).toEqual([409, "no-recording"]);
  expect((await suggestions()).body).toMatchObject({ source: "history", keys: 0, limits: [] });
});

test("a draft with mistakes is answered with all of them, and another id in the body is the path's", async () => {
  const { service, tryDraft } = await served({ record: makeTempFolder("try") });
  await using _ = service;
  const wrong = await tryDraft({ ...perUser, limit: -1, window: "x" });
  expect([wrong.status, wrong.body.code]).toEqual([400, "invalid-rules"]);
  expect(wrong.body.mistakes.map(({ path }: Json) => path)).toEqual(["rules[0].limit", "rules[0].window"]);
  expect((await tryDraft(perUser, "1y")).status).toBe(400);
  expect((await tryDraft({ ...perUser, id: "other" })).body).toMatchObject({ total: 0, newlyRefused: 0 });
});

async function recordedFolder(requests: number): Promise<string> {
  const run = record([perUser]);
  run.clock.ms = Date.now();
  for (let i = 0; i < requests; i++) await run.limiter.check({ user: `u${i % 50}` });
  await run.end();
  return run.folder;
}

test("ten thousand rules and the traffic are read on another thread, one draft at a time", async () => {
  const folder = await recordedFolder(5_000);
  const rules = Array.from({ length: 10_000 }, (_, i) => ({ ...perUser, id: `r${i}`, match: { tier: `t${i}` } }));
  const worker = new TrafficWorker();
  const task = { ...bounds, folder, fromMs: 0, document: JSON.stringify({ rules }), draft: { ...perUser, limit: 20 } };
  let turns = 0;
  const counting = setInterval(() => turns++, 1);
  const [first, second] = await Promise.allSettled([worker.tryOnTraffic(task), worker.tryOnTraffic(task)]);
  clearInterval(counting);
  expect(first).toMatchObject({ status: "fulfilled", value: { total: 5_000, newlyRefused: 4_000 } });
  expect(second).toMatchObject({ status: "rejected", reason: { code: "too-busy" } });
  // Compiling twenty thousand rules here would have been one long turn.
  expect(turns).toBeGreaterThan(20);
});

test("the reading ends at its bounds, and the answer says by which", async () => {
  const folder = await recordedFolder(12_000);
  const worker = new TrafficWorker();
  const task = { ...bounds, folder, fromMs: 0, document: '{"rules":[]}', draft: perUser };
  const byLines = await worker.tryOnTraffic({ ...task, mostLines: 1_000 });
  expect(byLines.endedBy).toBe("lines");
  expect(byLines.total).toBeLessThan(12_000);
  expect((await worker.tryOnTraffic({ ...task, mostMs: 0 })).endedBy).toBe("time");
  expect(await worker.tryOnTraffic(task)).toMatchObject({ total: 12_000, endedBy: undefined });
  expect(await worker.tryOnTraffic({ ...task, fromMs: Date.now() + 1 })).toMatchObject({ total: 0 });
});
