/**
 * Recordings (`--record`): a run over every algorithm, with everything that changes counters, replays without a difference.
 */
import { rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { type Decision, memoryStore, type Rule, ruleBook, SluiceError, type Store } from "sluice";
import { expect, test } from "vitest";
import { Logs } from "../../packages/server/src/analysis/log/read-logs.js";
import { Simulator } from "../../packages/server/src/analysis/simulate.js";
import { makeFolder } from "../../packages/server/src/instance/data-folder.js";
import { makeTempFolder } from "../harness/leash.js";
import { randomOf } from "../harness/random.js";
import { clean, filesIn, type Run, record, rulesOf, textOf, verify } from "./recorded-run.js";

/** Traffic that changes counters in every way there is. */
async function traffic(
  run: Run,
  { decisions, seed, stepsBack = false }: { decisions: number; seed: number; stepsBack?: boolean },
): Promise<void> {
  const { limiter, clock } = run;
  const random = randomOf(seed);
  const pick = (most: number): number => Math.floor(random() * most);
  const part = ruleBook([{ id: "envoy", key: ["limit"], algorithm: "fixed-window", limit: 20, window: "1s" }]);
  const kept: Decision[] = [];
  for (let made = 0; made < decisions; ) {
    // Promises alone never let the disk have its turn.
    if (made % 1_000 === 0) await run.segments.write();
    if (random() < 0.3) clock.ms += pick(20);
    else if (random() < 0.001) clock.ms += 5_000;
    if (stepsBack && random() < 0.001) clock.ms -= pick(500);
    const attributes = {
      user: `u${pick(40)}`,
      kind: "abcdefg"[pick(7)]!,
      path: random() < 0.2 ? `/v1/${pick(3)}` : "/other",
      tokens: 1 + pick(3),
    };
    const roll = random();
    if (roll < 0.9) {
      made++;
      const decision = limiter.checkNow(attributes, {
        ...(random() < 0.1 && { cost: pick(4) }),
        ...(random() < 0.05 && { id: `id-${seed}-${made}` }),
      }) as Decision;
      if (random() < 0.2) kept.push(decision);
      if (kept.length > 50) kept.shift();
    } else if (roll < 0.92) {
      made++;
      await limiter.charge(attributes, { cost: pick(5) });
    } else if (roll < 0.94) {
      made++;
      const parts = [{ attributes }, { attributes: { limit: `l${pick(5)}` }, book: part, charge: random() < 0.3 }];
      await limiter.checkAll(parts);
    } else if (roll < 0.96) {
      const decision = kept[pick(kept.length)];
      if (decision !== undefined) await limiter.refund(decision);
    } else if (roll < 0.98) {
      const lease = kept[pick(kept.length)]?.lease;
      if (lease !== undefined) await (random() < 0.5 ? limiter.renew(lease.id) : limiter.release(lease.id));
    } else if (roll < 0.99) await limiter.giveBack(attributes, { cost: 1 + pick(2) });
    else if (roll < 0.9995) await limiter.peek(attributes);
    else if (roll < 0.9997) await limiter.reset(random() < 0.5 ? "rolling" : "fixed", attributes);
    else if (roll < 0.9998) await limiter.block("fixed", attributes, 500);
    else limiter.setRules(rulesOf(3 + pick(8)));
  }
}

test("a recorded run of 200,000 decisions over all algorithms replays without a difference", async () => {
  const run = record(rulesOf(6));
  await traffic(run, { decisions: 200_000, seed: 1 });
  await run.end();
  const found = await verify(run.folder);
  expect(found).toEqual({ ...clean, decisions: 200_000 });
  for (const file of filesIn(run.folder)) expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("units that are given back to a bucket which is full under newer numbers are recorded: older ones still lack them", async () => {
  const rules = (limit: number): Rule[] => [
    { id: "bucket", key: ["user"], algorithm: "token-bucket", limit, window: "1s" },
  ];
  const run = record(rules(4));
  const { limiter, clock } = run;
  const user = { user: "u" };
  await limiter.check(user, { cost: 3 });
  clock.ms += 10;
  limiter.setRules(rules(1_000));
  expect(await limiter.giveBack(user, { cost: 1 })).toBe(false);
  limiter.setRules(rules(4));
  expect((await limiter.check(user)).remaining).toBe(1);
  await run.end();
  expect(await verify(run.folder)).toEqual({ ...clean, decisions: 2 });
});

test("after a clock was set back differences are uncertain, not wrong", async () => {
  const run = record(rulesOf(6));
  await traffic(run, { decisions: 8_000, seed: 2, stepsBack: true });
  await run.end();
  const { uncertain, ...found } = await verify(run.folder);
  expect(found).toMatchObject({ decisions: 8_000, differences: 0, otherNumbers: 0 });
});

test("hashed values are not in the file, and the replay still has no difference", async () => {
  const rules = rulesOf(6).filter(({ id }) => id !== "variants");
  const run = record(rules, { hash: ["user"] });
  await traffic(run, { decisions: 5_000, seed: 3 });
  await run.end();
  const text = textOf(run.folder);
  expect(text).not.toMatch(/"u\d+"|id-3-/);
  expect(text).toContain('"path":"/v1/0"');
  const { dropped, ...found } = await verify(run.folder);
  // A change of rules during the run brings the variants back: they are chosen by the value itself.
  expect(found).toMatchObject({ decisions: 5_000, differences: 0, otherNumbers: 0 });
});

test("rules that look into hashed values make their decisions uncertain, never different", async () => {
  const rules: Rule[] = [
    { id: "glob", match: { user: "a*" }, key: ["user"], algorithm: "fixed-window", limit: 2, window: "1m" },
    { id: "every", key: ["user"], algorithm: "fixed-window", limit: 5, window: "1m" },
  ];
  const run = record(rules, { hash: ["user"] });
  for (let i = 0; i < 10; i++) await run.limiter.check({ user: i % 2 === 0 ? "anna" : "bert" });
  await run.end();
  const found = await verify(run.folder);
  expect(found).toMatchObject({ decisions: 10, differences: 0, otherNumbers: 0, uncertain: 5 });
});

test("the folder stays within its bytes, and what is left of a recording replays", async () => {
  const run = record(rulesOf(6), { maxBytes: 160_000 });
  await traffic(run, { decisions: 12_000, seed: 4 });
  await run.end();
  const sizes = filesIn(run.folder).map((file) => statSync(file).size);
  expect(sizes.length).toBeGreaterThan(3);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(160_000);
  expect(await verify(run.folder)).toMatchObject({ differences: 0, otherNumbers: 0, unfinished: 0, bad: 0 });
});

test("requests that no rule counts are recorded too, for a draft that does", async () => {
  const run = record([{ id: "r", match: { path: "/a" }, key: [], algorithm: "fixed-window", limit: 2, window: "1m" }]);
  for (let i = 0; i < 5; i++) await run.limiter.check({ path: "/b", user: "u" });
  await run.end();
  expect(await verify(run.folder)).toEqual({ ...clean, decisions: 5 });
  const draft: Rule = { id: "new", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1m" };
  const simulator = new Simulator({ rules: [draft], comeBack: false, attributesOf: () => Promise.reject(new Error()) });
  for await (const batch of new Logs({ files: filesIn(run.folder) }).requests()) await simulator.addAll(batch);
  expect(await simulator.end()).toMatchObject({ total: 5, refused: 3 });
});

test("a torn segment is told and read as far as it goes", async () => {
  const run = record(rulesOf(6));
  await traffic(run, { decisions: 5_000, seed: 5 });
  await run.end();
  const [file] = filesIn(run.folder);
  truncateSync(file!, statSync(file!).size - 400);
  const found = await verify(run.folder);
  expect(found).toMatchObject({ differences: 0, otherNumbers: 0, unfinished: 1 });
  expect(found.decisions).toBeGreaterThan(3_000);
  const logs = new Logs({ files: [file!] });
  for await (const _ of logs.requests());
  expect(logs.counts.torn).toHaveLength(1);
});

test("a recording that was edited is read as far as it is one, and differences are found", async () => {
  const rule: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 3, window: "1m" };
  const run = record([rule]);
  for (let i = 0; i < 5; i++) await run.limiter.check({ user: "a" });
  await run.end();
  const [file] = filesIn(run.folder);
  const lines = textOf(run.folder).trimEnd().split("\n");
  const decisions = lines.flatMap((line, i) => (line.includes('"checks"') ? [i] : []));
  // The second decision goes, what is none comes in its place, and the last is said to have passed.
  lines[decisions[1]!] = '{"at":1,"attributes":[],"entry":7}\nnot JSON\n{"rule":7}\n{"at":-1,"checks":null}';
  lines[decisions[4]!] = lines[decisions[4]!]!.replace('"allowed":0', '"allowed":1').replace(
    '"enforce",0',
    '"enforce",1',
  );
  writeFileSync(file!, gzipSync(`${lines.join("\n")}\n`));
  const found = await verify(run.folder);
  expect(found).toMatchObject({ decisions: 4, bad: 4 });
  expect(found.differences + found.otherNumbers).toBeGreaterThan(0);
});

test("a rule set that no longer validates is told, and its decisions are uncertain", async () => {
  const rule: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 3, window: "1m" };
  const run = record([rule]);
  for (let i = 0; i < 5; i++) await run.limiter.check({ user: "a" });
  await run.end();
  const [file] = filesIn(run.folder);
  writeFileSync(file!, gzipSync(textOf(run.folder).replace('"limit":3', '"limit":-3')));
  const found = await verify(run.folder);
  expect(found).toMatchObject({ decisions: 5, differences: 0, uncertain: 5 });
  expect(found.unreadable[0]).toMatch(/limit/);
});

test("hostile attribute values are recorded and replayed as they are", async () => {
  const run = record([{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1m" }]);
  const values = ["a\nb", "\0", '"}\r\n{"end":true}', "\ud800", "x".repeat(900_000), "__proto__", "{}:[]", "\u2028"];
  for (const value of values) {
    for (let i = 0; i < 3; i++) {
      const attributes = JSON.parse(`{"__proto__":"p","constructor":"c"}`) as Record<string, string>;
      await run.limiter.check({ ...attributes, user: value });
    }
  }
  await run.end();
  expect(await verify(run.folder)).toEqual({ ...clean, decisions: 3 * values.length });
  expect(textOf(run.folder)).toContain('"__proto__":"p"');
});

test("decisions by policy are marked and taken as they are; what comes after an outage is uncertain", async () => {
  const memory = memoryStore();
  let isDown = false;
  const decide: Store["decide"] = (request) => {
    if (isDown) return Promise.reject(new SluiceError("store-unavailable", "away"));
    return memory.decide(request);
  };
  const store = new Proxy(memory, {
    get: (target, name) => {
      if (name === "decide") return decide;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const run = record([{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 4, window: "1m" }], { store });
  for (let i = 0; i < 9; i++) {
    isDown = i >= 3 && i < 6;
    await run.limiter.check({ user: "a" });
  }
  await run.end();
  expect(textOf(run.folder)).toContain('"degraded":"local"');
  expect(await verify(run.folder)).toMatchObject({ decisions: 6, byPolicy: 3, differences: 0, otherNumbers: 0 });
});

test("two instances in one folder are told apart", async () => {
  const folder = makeTempFolder("record");
  const runs = ["one", "two"].map((id) => record(rulesOf(4), { folder, id }));
  for (const run of runs) await traffic(run, { decisions: 2_000, seed: 6 });
  for (const run of runs) await run.end();
  expect(filesIn(folder)).toHaveLength(2);
  expect(await verify(folder)).toEqual({ ...clean, decisions: 4_000 });
});

test("a folder that is removed costs lines, which are counted and marked, and is made again", async () => {
  const folder = join(makeTempFolder("record"), "inner");
  let isFull = false;
  const run = record([{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 100, window: "1m" }], {
    folder,
    makeFolder: () => {
      if (isFull) throw new Error("ENOSPC: no space left on device");
      makeFolder(folder, "record");
    },
  });
  const { limiter, segments } = run;
  const decide = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) expect((await limiter.check({ user: "a" })).allowed).toBe(true);
    await segments.write();
  };
  await decide();
  rmSync(folder, { recursive: true });
  await decide();
  expect(segments.counts).toMatchObject({ failures: 1 });
  // The disk is full.
  isFull = true;
  await decide();
  expect(segments.counts.failures).toBe(2);
  expect(segments.counts.dropped).toBeGreaterThan(9);
  isFull = false;
  await decide();
  await run.end();
  expect(textOf(folder)).toContain('"dropped":');
  expect(await verify(folder)).toMatchObject({ decisions: 10, differences: 0, otherNumbers: 0, unfinished: 0 });
});

test("simulate under the recorded rules refuses what the recording has as refused", async () => {
  const rules = rulesOf(6).filter(({ id }) => id !== "variants");
  const run = record(rules);
  const { limiter, clock } = run;
  const held: (() => Promise<unknown>)[] = [];
  let refused = 0;
  for (let i = 0; i < 5_000; i++) {
    clock.ms += i % 7;
    const decision = await limiter.check({ user: `u${i % 11}`, kind: "abcdefg"[i % 7]!, path: "/x", tokens: 1 });
    if (!decision.allowed) refused++;
    if (decision.lease !== undefined && i % 3 === 0) held.push(() => decision.lease!.release());
    if (i % 5 === 0) held.push(() => limiter.refund(decision));
    if (held.length > 20) await held.shift()!();
  }
  await run.end();
  const simulator = new Simulator({ rules, comeBack: false, attributesOf: () => Promise.reject(new Error("mapped")) });
  const logs = new Logs({ files: filesIn(run.folder) });
  for await (const batch of logs.requests()) await simulator.addAll(batch);
  expect(await simulator.end()).toMatchObject({ total: 5_000, refused, malformed: 0 });
  expect(refused).toBeGreaterThan(100);
  expect([...logs.counts.formats.values()]).toEqual(["sluice"]);
});
