import fc from "fast-check";
import { createLimiter, memoryStore, type Rule } from "sluice";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { decodePlain } from "./decode-request.js";
import { parseDomains } from "./descriptor-config.js";
import { ruleOf } from "./envoy-rules.js";
import { type LimitTree, limitTree } from "./limit-tree.js";
import { loadProto } from "./load-proto.js";
import { rateLimitService } from "./message-codec.js";
import { SpelledResponse } from "./plain-requests.js";
import { codes, hasLimit, type RateLimitRequest, type RateLimitResponse } from "./rate-limit-messages.js";
import { RequestOverrides } from "./request-overrides.js";
import type { AnswerOptions } from "./respond.js";
import { createShouldRateLimit } from "./should-rate-limit.js";

type ShouldRateLimit = ReturnType<typeof createShouldRateLimit>;

const type = loadProto(["envoy/service/ratelimit/v3/rls.proto"]).lookupType(
  "envoy.service.ratelimit.v3.RateLimitRequest",
);
const { responseSerialize } = rateLimitService().ShouldRateLimit!;

const standard: AnswerOptions = {
  fields: "standard",
  body: true,
  dynamicMetadata: false,
  shadowMode: false,
  allQuotas: false,
  countsRefused: false,
  failsWithStore: false,
};

const NOW_MS = 1_700_000_000_000;

// An unused window ends with its clock-aligned unit, so both paths must see the same second.
beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"], now: NOW_MS }));
afterAll(() => void vi.useRealTimers());

function open(rules: readonly Rule[], answers: AnswerOptions, files?: string) {
  let nowMs = NOW_MS;
  const clock = { now: () => nowMs };
  const tree = files === undefined ? undefined : treeOf(files, answers);
  const limits = tree?.limits.map(ruleOf).filter((made) => made !== undefined) ?? [];
  const limiter = createLimiter({ rules: [...rules, ...limits], store: memoryStore({ clock }) });
  const told: unknown[] = [];
  if (tree !== undefined)
    limiter.on("decision", (decision, { attributes }) => told.push([attributes, decision.checks]));
  const shouldRateLimit = createShouldRateLimit({
    limiter,
    tree: () => tree,
    lacksLimits: () => false,
    overrides: new RequestOverrides(),
    answers,
    onGivenBack: () => undefined,
  });
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { limiter, shouldRateLimit, pass, told };
}

function treeOf(text: string, { allQuotas }: AnswerOptions): LimitTree {
  const outcome = parseDomains(text);
  if ("mistakes" in outcome) throw new Error(outcome.mistakes.join("\n"));
  return limitTree(outcome.domains, { allQuotas });
}

function asRead(request: object): RateLimitRequest {
  return decodePlain(Buffer.from(type.encode(request).finish()))!;
}

async function longWay(shouldRateLimit: ShouldRateLimit, request: RateLimitRequest) {
  const response = await shouldRateLimit(request);
  return {
    bytes: responseSerialize(response as never).toString("hex"),
    allowed: response.overallCode === codes.ok,
    matched: hasLimit(response),
  };
}

async function fastPath(shouldRateLimit: ShouldRateLimit, request: RateLimitRequest) {
  const made = await shouldRateLimit.plain(request);
  if (made === undefined) return undefined;
  if (made instanceof SpelledResponse)
    return { bytes: made.bytes.toString("hex"), allowed: made.allowed, matched: made.matched };
  const response = made as RateLimitResponse;
  return {
    bytes: responseSerialize(response as never).toString("hex"),
    allowed: response.overallCode === codes.ok,
    matched: hasLimit(response),
  };
}

const windows = fc.constantFrom("1s", "10s", "1m", "1h", "1d", "7s");
const algorithm = fc.constantFrom("fixed-window", "token-bucket", "gcra", "sliding-counter", "rolling-window");
const rule = (id: string) =>
  fc.record({
    id: fc.constantFrom(id, `${id}.${"long-".repeat(12)}`.slice(0, 60)),
    key: fc.constantFrom(["user"], ["tenant"], [], ["user", "tenant"]),
    algorithm,
    limit: fc.constantFrom(1, 2, 5, 1_000_000, 5_000_000_000),
    window: windows,
    mode: fc.constantFrom("enforce", "enforce", "shadow"),
  });
/** A rolling window of billions of entries would be refused. */
const bounded = (made: { algorithm: string; limit: number }) =>
  made.algorithm === "rolling-window" ? { ...made, limit: Math.min(made.limit, 1_000_000) } : made;
const rules = fc.oneof(
  fc.tuple(rule("a").map(bounded)),
  fc.tuple(rule("a").map(bounded), rule("b").map(bounded)),
  fc.constant([]),
) as unknown as fc.Arbitrary<Rule[]>;
const entry = fc.oneof(
  fc.record({ key: fc.constant("user"), value: fc.constantFrom("u1", "u2", "ü", "") }),
  fc.record({ key: fc.constant("tenant"), value: fc.constantFrom("t1", "t2") }),
  fc.record({ key: fc.constantFrom("path", "domain", "constructor"), value: fc.string({ maxLength: 4 }) }),
);
const descriptors = fc.array(fc.record({ entries: fc.array(entry, { maxLength: 3 }) }), { minLength: 1, maxLength: 2 });
const step = fc.record({
  descriptors,
  hitsAddend: fc.constantFrom(0, 1, 1, 1, 2, 7),
  passMs: fc.constantFrom(0, 0, 1, 999, 61_000),
});
const answerOptions = fc.record({
  fields: fc.constantFrom("standard" as const, "standard" as const, "off" as const, ["x-l", "x-r", "x-t"] as const),
  body: fc.boolean(),
  dynamicMetadata: fc.constantFrom(false, false, true),
  shadowMode: fc.constantFrom(false, false, true),
  allQuotas: fc.boolean(),
  countsRefused: fc.constant(false),
  failsWithStore: fc.boolean(),
});

test("the fast path returns the same bytes as the full path, for any rules, options and times", async () => {
  let compared = 0;
  const run = fc.asyncProperty(
    rules,
    answerOptions,
    fc.array(step, { minLength: 1, maxLength: 25 }),
    async (book, answers, steps) => {
      const fast = open(book, answers as AnswerOptions);
      const long = open(book, answers as AnswerOptions);
      for (const { descriptors: asked, hitsAddend, passMs } of steps) {
        fast.pass(passMs);
        long.pass(passMs);
        const request = asRead({ domain: "shop", descriptors: asked, hitsAddend });
        const found = await fastPath(fast.shouldRateLimit, request);
        expect(found).toEqual(await longWay(long.shouldRateLimit, request));
        compared++;
      }
      await Promise.all([fast.limiter.close(), long.limiter.close()]);
    },
  );
  await fc.assert(run, { numRuns: 400 });
  expect(compared).toBeGreaterThan(1_000);
});

const files = `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: user
    value: named
    rate_limit: { unit: hour, requests_per_unit: 3, name: 'a "name" of its ówn' }
  - key: user
    value: "wild*"
    share_threshold: true
    rate_limit: { unit: second, requests_per_unit: 2, algorithm: token-bucket }
  - key: user
    value: rolling
    rate_limit: { unit: day, requests_per_unit: 2, algorithm: rolling-window }
  - { key: user, value: free, rate_limit: { unlimited: true } }
  - { key: user, value: none, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: user, value: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: user, value: quota, quota_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: user, value: full, rate_limit: { unit: day, requests_per_unit: 2, count_refused: true } }
  - { key: user, value: place, rate_limit: { requests_per_unit: 1, algorithm: concurrency } }
  - { key: user, value: bare }
  - { key: user, value: replacing, rate_limit: { unit: day, requests_per_unit: 3, replaces: [{ name: below }] } }
  - key: tenant
    rate_limit: { unit: year, requests_per_unit: 4294967295 }
    descriptors:
      - { key: user, rate_limit: { unit: week, requests_per_unit: 2, name: below } }
`;
const users = [
  "u1",
  "ü",
  "",
  "named",
  "wild1",
  "wild2",
  "rolling",
  "free",
  "none",
  "shadow",
  "quota",
  "full",
  "place",
  "bare",
  "replacing",
];
const user = fc.record({ key: fc.constant("user"), value: fc.constantFrom(...users, ...users.slice(0, 7)) });
const tenant = fc.record({ key: fc.constant("tenant"), value: fc.constantFrom("t1", "t2") });
/** Some match a limit twice, some none. */
const ofFiles = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(fc.record({ key: fc.constant("user"), value: fc.constantFrom("u1", "u2", "named") })),
  },
  { weight: 2, arbitrary: fc.tuple(user) },
  { weight: 2, arbitrary: fc.tuple(tenant, user) },
  { weight: 2, arbitrary: fc.tuple(tenant) },
  { weight: 1, arbitrary: fc.tuple(fc.record({ key: fc.constant("path"), value: fc.constant("/") })) },
);
const fileStep = fc.record({
  domain: fc.oneof({ weight: 9, arbitrary: fc.constant("shop") }, { weight: 1, arbitrary: fc.constant("other") }),
  descriptors: fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.record({ entries: fc.tuple(user) })) },
    { weight: 2, arbitrary: fc.tuple(fc.record({ entries: fc.tuple(tenant, user) })) },
    { weight: 2, arbitrary: descriptors },
    { weight: 4, arbitrary: fc.array(fc.record({ entries: ofFiles }), { minLength: 2, maxLength: 4 }) },
  ),
  hitsAddend: fc.constantFrom(0, 1, 1, 1, 2, 7),
  passMs: fc.constantFrom(0, 0, 1, 999, 61_000),
});
/** Includes some of Sluice's own rules, which force every request onto the full path. */
const beside = fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: rules });

test("with Envoy's files too, bytes, decisions and listener events equal those of the full path", async () => {
  let compared = 0;
  const run = fc.asyncProperty(
    beside,
    fc.tuple(answerOptions, fc.constantFrom(false, false, false, true)).map(([answers, allQuotas]) => ({
      ...answers,
      allQuotas,
    })),
    fc.array(fileStep, { minLength: 1, maxLength: 25 }),
    async (book, answers, steps) => {
      const fast = open(book, answers as AnswerOptions, files);
      const long = open(book, answers as AnswerOptions, files);
      for (const { passMs, ...asked } of steps) {
        fast.pass(passMs);
        long.pass(passMs);
        const request = asRead(asked);
        const found = await fastPath(fast.shouldRateLimit, request);
        if (found !== undefined) compared++;
        const expected = await longWay(long.shouldRateLimit, request);
        // A lease id is random, so skip the comparison; the fast path takes no such limit.
        if (found !== undefined) expect(found).toEqual(expected);
        else await longWay(fast.shouldRateLimit, request);
      }
      const withoutLeases = (text: string) => text.replaceAll(/"lease":"[^"]*"/g, "");
      expect(withoutLeases(JSON.stringify(fast.told))).toBe(withoutLeases(JSON.stringify(long.told)));
      await Promise.all([fast.limiter.close(), long.limiter.close()]);
    },
  );
  // About 260 in a hundred runs, and once 200.
  await fc.assert(run, { numRuns: 150 });
  expect(compared).toBeGreaterThan(200);
});

test("ordinary limits take the fast path; all other requests, and any with a rule of Sluice's own, do not", async () => {
  const isPlain = async (values: readonly string[], book: readonly Rule[] = []): Promise<boolean> => {
    const { limiter, shouldRateLimit } = open(book, standard, files);
    const asked = asRead({
      domain: "shop",
      descriptors: values.map((value) => ({ entries: [{ key: "user", value }] })),
      hitsAddend: 1,
    });
    const found = await fastPath(shouldRateLimit, asked);
    await limiter.close();
    return found !== undefined;
  };
  const plain: string[] = [];
  for (const value of users) if (await isPlain([value])) plain.push(value);
  expect(plain).toEqual(["u1", "ü", "", "named", "wild1", "wild2", "rolling", "replacing"]);
  const besideOne: string[] = [];
  for (const value of users) if (await isPlain(["u1", value])) besideOne.push(value);
  // "bare" matches no limit, but still has a status of its own.
  expect(besideOne).toEqual(["u1", "ü", "", "named", "wild1", "wild2", "rolling", "bare"]);
  expect(await isPlain(["bare", "bare"])).toBe(false);
  expect(await isPlain(["u1"], [{ id: "own", key: [], algorithm: "fixed-window", limit: 9, window: "1m" }])).toBe(
    false,
  );
});

test("reloaded files appear in responses with their new names and numbers at once", async () => {
  const text = (name: string, limit: number) =>
    `domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: ${limit}, name: ${name} } }]`;
  const trees = [text("before", 5), text("after", 5), text("after", 7)].map((made) => treeOf(made, standard));
  const limiter = createLimiter({ rules: [] });
  let tree = trees[0]!;
  const shouldRateLimit = createShouldRateLimit({
    limiter,
    tree: () => tree,
    lacksLimits: () => false,
    overrides: new RequestOverrides(),
    answers: standard,
    onGivenBack: () => undefined,
  });
  const told: string[] = [];
  for (const next of trees) {
    limiter.setRules(next.limits.map(ruleOf).filter((made) => made !== undefined));
    tree = next;
    for (let i = 0; i < 2; i++) {
      const { bytes } = (await fastPath(shouldRateLimit, asRead({ ...ask, hitsAddend: 1 })))!;
      told.push(/"\w+";q=\d+/.exec(Buffer.from(bytes, "hex").toString("latin1"))![0]);
    }
  }
  expect(told).toEqual(['"before";q=5', '"before";q=5', '"after";q=5', '"after";q=5', '"after";q=7', '"after";q=7']);
  await limiter.close();
});

const one: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 1, window: "1h" };
const ask = { domain: "shop", descriptors: [{ entries: [{ key: "user", value: "u" }] }] };

test("each refusal carries its own wait, to the millisecond", async () => {
  const { limiter, shouldRateLimit, pass } = open([one], standard);
  const waits: string[] = [];
  await fastPath(shouldRateLimit, asRead(ask));
  for (const ms of [0, 1, 1, 500, 2_000_000]) {
    pass(ms);
    const { bytes } = (await fastPath(shouldRateLimit, asRead(ask)))!;
    waits.push(/"retryAfterMs":(\d+)\}/.exec(Buffer.from(bytes, "hex").toString("latin1"))![1]!);
  }
  const first = Number(waits[0]);
  expect(waits.map(Number)).toEqual([first, first - 1, first - 2, first - 502, first - 2_000_502]);
  await limiter.close();
});

test("a changed rule appears in responses with its new numbers at once", async () => {
  const { limiter, shouldRateLimit } = open([{ ...one, limit: 5 }], standard);
  const told = async (): Promise<string> =>
    Buffer.from((await fastPath(shouldRateLimit, asRead(ask)))!.bytes, "hex").toString("latin1");
  await told();
  expect(await told()).toContain('"r";q=5;w=3600');
  limiter.setRules([{ ...one, limit: 7 }]);
  expect(await told()).toContain('"r";q=7;w=3600');
  await limiter.close();
});

test("a load-shedding rule adds no status to a request that passes, on either path", async () => {
  const shed: Rule = { id: "shed", key: [], algorithm: "load-shedding", signal: "reported" };
  const answers = await Promise.all(
    [fastPath, longWay].map(async (way) => {
      const { limiter, shouldRateLimit } = open([{ ...one, limit: 5 }, shed], standard);
      const noUser = { ...ask, descriptors: [{ entries: [{ key: "path", value: "/" }] }] };
      const found = [await way(shouldRateLimit, asRead(ask)), await way(shouldRateLimit, asRead(noUser))];
      await limiter.close();
      return found;
    }),
  );
  expect(answers[0]).toEqual(answers[1]);
  expect(answers[0]!.map((found) => found?.matched)).toEqual([true, false]);
});

test("all other requests take the full path", () => {
  const { shouldRateLimit } = open([one], standard);
  const withEntry = (key: string) => asRead({ ...ask, descriptors: [{ entries: [{ key, value: "x" }] }] });
  expect(shouldRateLimit.plain(withEntry("sluice_lease"))).toBeUndefined();
  expect(shouldRateLimit.plain(withEntry("envoy.limit"))).toBeUndefined();
  expect(shouldRateLimit.plain(withEntry("__proto__"))).toBeUndefined();
  expect(shouldRateLimit.plain(asRead({ ...ask, domain: "" }))).toBeUndefined();
  expect(shouldRateLimit.plain(asRead({ ...ask, descriptors: [] }))).toBeUndefined();
  expect(shouldRateLimit.plain({ ...ask, hitsAddend: 1 } as never)).toBeUndefined();
});
