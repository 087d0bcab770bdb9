/**
 * Random requests, and what envoyproxy/ratelimit answered them: its answers are recorded beside this file, and held against a running one that has
 * read `limits` with SLUICE_PEER_ER=HOST:PORT (`print` prints them; SLUICE_PEER_RECORD=true records anew). Each case has counters of its own
 * and ends at its first difference, so every difference stands for itself. Those on purpose are in `onPurpose` and, in words, in
 * docs/from-envoyproxy-ratelimit.md; the bar is none outside.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { connectEnvoy, type EnvoyClient } from "./envoy-client.js";
import { type Json, startTestService } from "./running-service.js";

const levels = `
      - { key: user, rate_limit: { unit: year, requests_per_unit: 3 } }
      - { key: user, value: vip, rate_limit: { unlimited: true } }
      - { key: user, value: trusted }
      - { key: user, value: "bot-*", rate_limit: { unit: year, requests_per_unit: 0 } }
      - { key: user, value: "a*c", rate_limit: { unit: week, requests_per_unit: 4 } }
      - { key: file, value: "tmp-*", share_threshold: true, rate_limit: { unit: year, requests_per_unit: 4 } }
      - { key: shadowed, shadow_mode: true, rate_limit: { unit: year, requests_per_unit: 1 } }
      - { key: base, rate_limit: { unit: year, requests_per_unit: 1, name: base } }
      - { key: gold, rate_limit: { unit: year, requests_per_unit: 5, name: gold, replaces: [{ name: base }] } }
      - { key: quota, quota_mode: true, rate_limit: { unit: year, requests_per_unit: 1 } }
      - { key: spare, quota_mode: true, rate_limit: { unit: year, requests_per_unit: 2 } }
      - { key: tokens, rate_limit: { unit: year, requests_per_unit: 10 } }
      - { key: code, value: 00123, rate_limit: { unit: week, requests_per_unit: 1 } }
      - key: nested
        rate_limit: { unit: year, requests_per_unit: 3 }
        descriptors:
          - { key: path, rate_limit: { unit: year, requests_per_unit: 2 } }
          - { key: path, value: /pay, rate_limit: { unit: year, requests_per_unit: 1 } }
`;
/** All below a bare key, whose value is the case: so cases share no counter, not even under share_threshold. */
const limits = `domain: peer\ndescriptors:\n  - key: case\n    rate_limit: { unit: year, requests_per_unit: 6 }\n    descriptors:${levels}`;

const SEED = 20_261_116;
const CASES = 400;
const answersFile = fileURLToPath(new URL("envoy-peer-answers.txt", import.meta.url));

const keys = [
  "user",
  "user",
  "file",
  "shadowed",
  "base",
  "gold",
  "quota",
  "spare",
  "tokens",
  "code",
  "nested",
  "nobody",
];
const values = ["vip", "trusted", "bot-1", "tmp-1", "tmp-2", "abc", "00123", "x", "x", "x", "y", ""];

/** mulberry32: whole numbers below n. */
function randomFrom(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

/** Requests of one case. `CASE` stands for its own value. */
function requestsOf(seed: number): Json[] {
  const random = randomFrom(seed);
  const pick = (list: readonly string[]): string => list[random(list.length)]!;
  // Few of each in a case, so that its requests meet.
  const [ownKeys, ownValues] = [
    [pick(keys), pick(keys)],
    [pick(values), pick(values)],
  ];
  const descriptor = (): Json => {
    const entries = [{ key: "case", value: "CASE" }];
    if (random(8) > 0) entries.push({ key: pick(ownKeys), value: pick(ownValues) });
    if (entries.length === 2 && random(entries[1]!.key === "nested" ? 2 : 12) === 0)
      entries.push({ key: "path", value: pick(["/pay", "/x"]) });
    const limit = random(8) === 0 ? { requestsPerUnit: random(6), unit: [6, 7][random(2)] } : undefined;
    const hits = random(3) === 0 ? { value: random(5) } : undefined;
    return { entries, ...(limit && { limit }), ...(hits && { hitsAddend: hits }) };
  };
  // Two with the same counter are answered otherwise on purpose: a few of them will do.
  const descriptors = (): Json[] => {
    const made = Array.from({ length: random(60) === 0 ? 0 : 1 + random(3) }, descriptor);
    if (random(40) === 0) return made;
    return made.filter((one, i) => made.findIndex((other) => counterOf(other) === counterOf(one)) === i);
  };
  return Array.from({ length: 2 + random(7) }, () => ({
    domain: random(40) === 0 ? "other" : "peer",
    descriptors: descriptors(),
    hitsAddend: random(3) === 0 ? random(4) : 0,
  }));
}

/** The overall code, and of each descriptor code, limit, unit and remaining; "error" where the caller is at fault. */
async function answer(envoy: EnvoyClient, request: Json, own: string): Promise<string> {
  const sent = JSON.parse(JSON.stringify(request).replaceAll("CASE", own)) as Json;
  try {
    const { overallCode, statuses } = await envoy.shouldRateLimit(sent);
    const spelled = statuses.map(({ code, currentLimit, limitRemaining }: Json) =>
      [code, currentLimit?.requestsPerUnit ?? "-", currentLimit?.unit ?? "-", limitRemaining].join("/"),
    );
    return [overallCode, ...spelled].join(" ");
  } catch (error) {
    // UNKNOWN there, INVALID_ARGUMENT here.
    if ([2, 3].includes((error as { code: number }).code)) return "error";
    throw error;
  }
}

async function answersOf(envoy: EnvoyClient, requests: readonly Json[], own: string): Promise<string[]> {
  const answers: string[] = [];
  for (const request of requests) answers.push(await answer(envoy, request, own));
  return answers;
}

interface Difference {
  /** Prints the case anew. */
  readonly seed: number;
  /** Up to the one that was answered otherwise. */
  readonly requests: readonly Json[];
  /** The reference's answers to them. */
  readonly theirs: readonly string[];
  readonly ours: string;
}

const isOver = (status: string): boolean => status.startsWith("2/");
const isShadow = ({ entries }: Json): boolean => entries[1]?.key === "shadowed";
const hitsOf = (descriptor: Json, { hitsAddend }: Json): number =>
  descriptor.hitsAddend?.value ?? Math.max(1, hitsAddend);
/** By what the reference counts. */
const counterOf = ({ entries }: Json): string => JSON.stringify(entries).replaceAll(/"tmp-\d"/g, '"tmp-*"');

/** The written list. */
const onPurpose: Record<string, (difference: Difference) => boolean> = {
  "two descriptors of one request with the same counter": ({ requests }) =>
    requests.some(({ descriptors }) => new Set(descriptors.map(counterOf)).size < descriptors.length),
  "a limit of 0 counts a single hit as two, and a look at it sees one hit as none": ({ requests, theirs }) =>
    requests.some(({ descriptors }, i) =>
      descriptors.some((one: Json, k: number) => {
        const [, limit] = theirs[i]!.split(" ")[k + 1]!.split("/");
        return limit === "0" && hitsOf(one, requests[i]!) <= 1;
      }),
    ),
};
const byDefault: typeof onPurpose = {
  "refused plain hits, and those of siblings, are not counted": ({ requests, theirs }) =>
    requests.some(({ descriptors }, i) => {
      const statuses = theirs[i]!.split(" ").slice(1);
      // A shadow's status is never over; nothing remaining is all that shows it.
      const isPast = (status: string, k: number): boolean =>
        isOver(status) || (isShadow(descriptors[k]) && status.endsWith("/0"));
      return statuses.some(isPast) && descriptors.some((one: Json) => one.hitsAddend === undefined);
    }),
  ...onPurpose,
};

/** How many differences of each kind; those of no kind as they are. */
function sort(differences: readonly Difference[], list: typeof onPurpose): { counts: Json; outside: Difference[] } {
  const counts: Json = {};
  const outside: Difference[] = [];
  for (const difference of differences) {
    const kind = Object.keys(list).find((name) => list[name]!(difference));
    if (kind === undefined) outside.push(difference);
    else counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return { counts, outside };
}

async function compare(
  ours: EnvoyClient,
  { seeds, theirsOf }: { seeds: readonly number[]; theirsOf: (seed: number, requests: Json[]) => Promise<string[]> },
): Promise<{ requests: number; differences: Difference[] }> {
  const differences: Difference[] = [];
  let asked = 0;
  for (const seed of seeds) {
    const requests = requestsOf(seed);
    const theirs = await theirsOf(seed, requests);
    for (let i = 0; i < requests.length; i++) {
      asked++;
      const told = await answer(ours, requests[i]!, `c${seed}`);
      if (told === theirs[i]) continue;
      differences.push({ seed, requests: requests.slice(0, i + 1), theirs: theirs.slice(0, i + 1), ours: told });
      break;
    }
  }
  return { requests: asked, differences };
}

const seedsFrom = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i);
const modes = [
  { mode: "with --envoy-count-refused", list: onPurpose, settings: { "envoy-count-refused": "true" } },
  { mode: "by default", list: byDefault, settings: {} },
];

async function outsideTheList(
  { list, settings }: (typeof modes)[number],
  cases: Parameters<typeof compare>[1],
): Promise<Difference[]> {
  await using service = await startTestService({
    files: { "limits/peer.yaml": limits },
    settings: { "envoy-config": "limits", ...settings },
  });
  const ours = connectEnvoy(service.grpc);
  const { requests, differences } = await compare(ours, cases).finally(() => ours.close());
  const { counts, outside } = sort(differences, list);
  if (peer !== undefined)
    console.info({ cases: cases.seeds.length, requests, onPurpose: counts, outside: outside.length });
  return outside;
}

const { SLUICE_PEER_ER: peer, SLUICE_PEER_RECORD: records } = process.env;

test.each(modes)("recorded answers of the reference are ours, but for the written list: $mode", async (mode) => {
  const recorded = readFileSync(answersFile, "utf8").trimEnd().split("\n");
  expect(recorded).toHaveLength(CASES);
  const theirsOf = async (seed: number): Promise<string[]> => recorded[seed - SEED]!.split(" | ");
  expect((await outsideTheList(mode, { seeds: seedsFrom(SEED, CASES), theirsOf })).slice(0, 3)).toEqual([]);
});

if (peer === "print") process.stdout.write(limits);
else if (peer !== undefined) {
  const run = Date.now();
  test.each(modes)(
    `as the reference at ${peer} answers 1000 cases of this run's own: $mode`,
    async (mode) => {
      const reference = connectEnvoy(peer);
      const theirsOf = (seed: number, requests: Json[]) =>
        answersOf(reference, requests, `${mode.mode} ${run} ${seed}`);
      const outside = await outsideTheList(mode, { seeds: seedsFrom(run % 2 ** 31, 1_000), theirsOf });
      reference.close();
      expect(outside.slice(0, 3)).toEqual([]);
    },
    600_000,
  );
  if (records === "true") {
    test("records the reference's answers", async () => {
      const reference = connectEnvoy(peer);
      const lines: string[] = [];
      for (const seed of seedsFrom(SEED, CASES))
        lines.push((await answersOf(reference, requestsOf(seed), `record ${run} ${seed}`)).join(" | "));
      reference.close();
      writeFileSync(answersFile, `${lines.join("\n")}\n`);
    });
  }
}
