/** What a hostile client of the gRPC port, or of an Envoy in front of it, can put into descriptors: no failure, no counter of others touched. */
import { status } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { connectEnvoy, descriptor, type EnvoyClient } from "./envoy-client.js";
import { type Json, type RunningService, startTestService } from "./running-service.js";

const OK = 1;
const OVER_LIMIT = 2;
const MOST_UINT64 = "18446744073709551615";

const limits = `
domain: shop
descriptors:
  - { key: user, rate_limit: { unit: year, requests_per_unit: 2 } }
  - { key: refundable, rate_limit: { unit: year, requests_per_unit: 5, negative_hits: true } }
  - { key: pool, rate_limit: { requests_per_unit: 2, algorithm: concurrency, ttl: 1h } }
  - { key: bucket, rate_limit: { requests_per_unit: 3, window: 1h, algorithm: token-bucket } }
`;

async function withService(
  work: (envoy: EnvoyClient, service: RunningService) => Promise<void>,
  settings: Record<string, string> = {},
): Promise<void> {
  await using service = await startTestService({
    files: { "limits/shop.yaml": limits },
    settings: { "envoy-config": "limits", ...settings },
  });
  const envoy = connectEnvoy(service.grpc);
  try {
    await work(envoy, service);
  } finally {
    envoy.close();
  }
}

const ask = (envoy: EnvoyClient, ...descriptors: Json[]) => envoy.shouldRateLimit({ domain: "shop", descriptors });

/** So many pass, of so many. */
async function passing(envoy: EnvoyClient, of: Json, count: number): Promise<number> {
  let passed = 0;
  for (let i = 0; i < count; i++) if ((await ask(envoy, of)).overallCode === OK) passed++;
  return passed;
}

function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

const nasty = [
  "",
  " ",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "sluice_lease",
  "user",
  "domain",
  "\0",
  "a\0b",
  "\r\nX-Injected: 1",
  "{user}",
  "}{",
  "*",
  "%00",
  "\ud800",
  "\u202e\u0000\u{1F600}",
  "..",
  ":",
  "|",
  "é".repeat(300),
  "x".repeat(64 * 1_024),
];

test("400 random requests of hostile names, values, hits and limits are decided or the caller's mistake; others' counters stay exact", () =>
  withService(async (envoy) => {
    const seed = Date.now() % 2 ** 31;
    const below = seeded(seed);
    const pick = <T>(from: readonly T[]): T => from[below(from.length)]!;
    const hits = [undefined, 0, 1, 2 ** 32 - 1, "4294967296", "9007199254740993", MOST_UINT64];
    const seen = new Map<string, number>();
    for (let i = 0; i < 400; i++) {
      const descriptors = Array.from({ length: 1 + below(4) }, () => {
        const value = pick(hits);
        return {
          entries: Array.from({ length: below(4) }, () => ({ key: pick(nasty), value: pick(nasty) })),
          ...(value !== undefined && { hitsAddend: { value } }),
          ...(below(4) === 0 && { isNegativeHits: true }),
          ...(below(4) === 0 && { limit: { requestsPerUnit: pick([0, 1, 2 ** 32 - 1]), unit: below(8) } }),
        };
      });
      const request = { domain: pick(["shop", "shop", ...nasty]), descriptors, hitsAddend: pick([0, 1, 2 ** 32 - 1]) };
      const outcome = await envoy.shouldRateLimit(request).then(
        ({ overallCode, statuses }) => {
          expect(statuses, `seed ${seed}`).toHaveLength(descriptors.length);
          return `decided ${overallCode}`;
        },
        (error) => `error ${error.code}`,
      );
      seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
    }
    const expected = [`decided ${OK}`, `decided ${OVER_LIMIT}`, `error ${status.INVALID_ARGUMENT}`];
    expect(
      [...seen.keys()].filter((outcome) => !expected.includes(outcome)),
      `seed ${seed}`,
    ).toEqual([]);
    expect(seen.get(`decided ${OK}`), `seed ${seed}`).toBeGreaterThan(20);
    expect(await passing(envoy, descriptor({ user: "victim" }), 4)).toBe(2);
  }));

test("values of 64 KB are told apart to the last character", () =>
  withService(async (envoy) => {
    const long = "x".repeat(64 * 1_024);
    for (const value of [`${long}a`, `${long}b`, long]) {
      expect(await passing(envoy, descriptor({ user: value }), 4)).toBe(2);
    }
  }));

test("the most that 64 bits hold is counted as much as can be, and ends with its window; a look and a charge of it never wrap", () =>
  withService(async (envoy) => {
    for (const value of ["9223372036854775808", "9007199254740993", MOST_UINT64]) {
      const user = descriptor({ user: `u${value}` });
      const charged = await ask(envoy, { ...user, hitsAddend: { value } });
      expect(charged).toMatchObject({ overallCode: OVER_LIMIT, statuses: [{ limitRemaining: 0 }] });
      expect((await ask(envoy, { ...user, hitsAddend: { value: 0 } })).overallCode).toBe(OVER_LIMIT);
      // As negative hits: they are not taken from a limit that does not say so.
      await ask(envoy, { ...user, hitsAddend: { value }, isNegativeHits: true });
      expect((await ask(envoy, user)).overallCode).toBe(OVER_LIMIT);
    }
    const back = descriptor({ refundable: "x" });
    await ask(envoy, { ...back, hitsAddend: { value: 4 } });
    for (let i = 0; i < 3; i++) await ask(envoy, { ...back, hitsAddend: { value: MOST_UINT64 }, isNegativeHits: true });
    expect(await passing(envoy, back, 8)).toBe(5);
  }));

test("leases that nobody was given, or of another pool, free no place, and a true one frees its place once", () =>
  withService(async (envoy, service) => {
    const place = () => ask(envoy, descriptor({ pool: "a" }));
    const held = (await place()).dynamicMetadata.fields.sluice_lease.stringValue as string;
    const other = (await ask(envoy, descriptor({ pool: "b" }))).dynamicMetadata.fields.sluice_lease
      .stringValue as string;
    expect((await place()).overallCode).toBe(OK);
    expect((await place()).overallCode).toBe(OVER_LIMIT);
    // An id is a secret, and where its places are: both must fit. (Other spellings of the same two are the same lease.)
    const [secret, ...where] = held.split(".");
    const spell = (guess: string) => [guess, ...where].join(".");
    const guesses = [
      `B${secret!.slice(1)}`,
      secret!.toLowerCase(),
      secret!.slice(0, -1),
      `${secret}A`,
      "",
      other.split(".")[0]!,
    ];
    const lies = [...nasty, secret!, other, `${other},${held}`, ...guesses.filter((one) => one !== secret).map(spell)];
    for (const lie of lies) {
      await ask(envoy, descriptor({ sluice_lease: lie })).catch((error) =>
        expect(error.code).toBe(status.INVALID_ARGUMENT),
      );
      expect((await place()).overallCode, JSON.stringify(lie.slice(0, 80))).toBe(OVER_LIMIT);
    }
    // The true one frees one place, once, though it comes thrice.
    for (let i = 0; i < 3; i++) await ask(envoy, descriptor({ sluice_lease: held }));
    expect(await passing(envoy, descriptor({ pool: "a" }), 3)).toBe(1);
    const metrics = await (await fetch(`${service.http}/metrics`)).text();
    expect(metrics).toContain('sluice_envoy_given_back_total{outcome="released"} 2');
  }));

describe.skipIf(whyMissing("redis"))("on Redis", () => {
  test("5000 domains that nobody configured are passed and leave nothing behind; every counter expires, under a short key", async () => {
    await using redis = await startRedis();
    await withService(
      async (envoy) => {
        const before = Number(await redis.cli("DBSIZE"));
        const unknown = Array.from({ length: 5_000 }, (_, i) =>
          envoy.shouldRateLimit({ domain: `d${i}`, descriptors: [descriptor({ user: "x" })] }),
        );
        for (const { overallCode } of await Promise.all(unknown)) expect(overallCode).toBe(OK);
        // Beside what the instance itself keeps, such as its heartbeat.
        expect(Number(await redis.cli("DBSIZE"))).toBeLessThan(before + 50);
        const long = "x".repeat(64 * 1_024);
        await Promise.all(["user", "bucket", "refundable"].map((key) => ask(envoy, descriptor({ [key]: long }))));
        const keys = (await redis.cli("--raw", "KEYS", "*")).split("\n").filter(Boolean);
        expect(Math.max(...keys.map((key) => key.length))).toBeLessThan(1_024);
        for (const key of keys) expect(Number(await redis.cli("PTTL", key)), key).toBeGreaterThan(0);
      },
      { store: redis.url, "store-deadline": "30s" },
    );
  });
});
