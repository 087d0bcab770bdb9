import fc from "fast-check";
import { createLimiter, memoryStore, type Rule } from "sluice";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { decodePlain } from "./decode-request.js";
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

// A window of which nothing is used ends with its unit, by the clock: both ways are asked within one second.
beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"], now: NOW_MS }));
afterAll(() => void vi.useRealTimers());

function open(rules: readonly Rule[], answers: AnswerOptions) {
  let nowMs = NOW_MS;
  const clock = { now: () => nowMs };
  const limiter = createLimiter({ rules, store: memoryStore({ clock }) });
  const shouldRateLimit = createShouldRateLimit({
    limiter,
    tree: () => undefined,
    lacksLimits: () => false,
    overrides: new RequestOverrides(),
    answers,
    onGivenBack: () => undefined,
  });
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { limiter, shouldRateLimit, pass };
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
/** A log of five thousand million entries is refused. */
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

test("a plain request gets the bytes that the long way would give it, whatever rules, answers and times there are", async () => {
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

const one: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 1, window: "1h" };
const ask = { domain: "shop", descriptors: [{ entries: [{ key: "user", value: "u" }] }] };

test("a refusal is spelled anew for its own wait, to the millisecond", async () => {
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

test("a rule that changes is told with its new numbers at once", async () => {
  const { limiter, shouldRateLimit } = open([{ ...one, limit: 5 }], standard);
  const told = async (): Promise<string> =>
    Buffer.from((await fastPath(shouldRateLimit, asRead(ask)))!.bytes, "hex").toString("latin1");
  await told();
  expect(await told()).toContain('"r";q=5;w=3600');
  limiter.setRules([{ ...one, limit: 7 }]);
  expect(await told()).toContain('"r";q=7;w=3600');
  await limiter.close();
});

test("a rule that sheds load has no status of a request that passes, on either way", async () => {
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

test("requests with more to them go the long way", () => {
  const { shouldRateLimit } = open([one], standard);
  const withEntry = (key: string) => asRead({ ...ask, descriptors: [{ entries: [{ key, value: "x" }] }] });
  expect(shouldRateLimit.plain(withEntry("sluice_lease"))).toBeUndefined();
  expect(shouldRateLimit.plain(withEntry("envoy.limit"))).toBeUndefined();
  expect(shouldRateLimit.plain(withEntry("__proto__"))).toBeUndefined();
  expect(shouldRateLimit.plain(asRead({ ...ask, domain: "" }))).toBeUndefined();
  expect(shouldRateLimit.plain(asRead({ ...ask, descriptors: [] }))).toBeUndefined();
  expect(shouldRateLimit.plain({ ...ask, hitsAddend: 1 } as never)).toBeUndefined();
});
