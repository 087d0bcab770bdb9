/**
 * Reservations on a real Redis: fleets of LLM gateways on one budget of tokens, demand twice the limit, answer lengths of a public trace
 * (llm-lengths.json). Is the budget ever passed, how much of it is used, how many store calls does a request cost?
 *
 *   npm run build && node bench/reservations.mjs [--quick]
 *
 * Time runs twenty times as fast: a minute of the limit is three seconds, and streams produce 1000 tokens a second. The calls to Redis are
 * as slow as they are, so that the figures are rather worse than those of real minutes. Costs are learned before it begins: the
 * pauses between batches of them are real ones. Beside it, what no policy can do better, and what two do that no server can have: they know the
 * distribution, and how far each stream is (reservation-frontier.mjs).
 */
import { readFileSync } from "node:fs";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";
import { startRedis } from "./redis-server.mjs";
import { printBars } from "./report.mjs";
import { frontier } from "./reservation-frontier.mjs";
import { worstOver, worstProduced } from "./reservation-judge.mjs";

const FASTER = 20;
const WINDOW_MS = 60_000 / FASTER;
const TOKENS_PER_MS = 0.05 * FASTER;
const OVERLOAD = 2;
const FEWEST_MORE = 64;
/** Requests of other keys whose costs are known when the overload begins. */
const LEARNED = 600;
/** The bucket starts full. */
const WARM_UP_WINDOWS = 3;
const PARTS = 4;

/** @typedef {{ algorithm: import("./reservation-judge.mjs").Algorithm, limit: number, instances: number }} Load */
/** @typedef {import("./reservation-judge.mjs").Use} Use */

const lengths = JSON.parse(readFileSync(new URL("llm-lengths.json", import.meta.url), "utf8"));
/** @type {number[]} */
const tokensAt = lengths.generatedTokens;
const meanTokens = tokensAt.reduce((sum, tokens) => sum + tokens, 0) / tokensAt.length;

function answerLength() {
  const at = Math.random() * (tokensAt.length - 1);
  const below = Math.floor(at);
  const from = tokensAt[below] ?? 0;
  const to = tokensAt[Math.min(below + 1, tokensAt.length - 1)] ?? 0;
  return Math.round(from + (to - from) * (at - below));
}

/** @type {Load[]} */
const loads = [
  { algorithm: "token-bucket", limit: 50_000, instances: 1 },
  { algorithm: "token-bucket", limit: 50_000, instances: 4 },
  { algorithm: "token-bucket", limit: 50_000, instances: 8 },
  { algorithm: "gcra", limit: 50_000, instances: 2 },
  { algorithm: "fixed-window", limit: 50_000, instances: 1 },
  { algorithm: "fixed-window", limit: 50_000, instances: 8 },
  { algorithm: "rolling-window", limit: 50_000, instances: 1 },
  { algorithm: "rolling-window", limit: 50_000, instances: 8 },
  { algorithm: "sliding-counter", limit: 50_000, instances: 1 },
  { algorithm: "sliding-counter", limit: 50_000, instances: 8 },
  { algorithm: "token-bucket", limit: 5_000, instances: 1 },
  { algorithm: "token-bucket", limit: 5_000, instances: 8 },
  { algorithm: "gcra", limit: 5_000, instances: 4 },
  { algorithm: "fixed-window", limit: 5_000, instances: 8 },
  { algorithm: "rolling-window", limit: 5_000, instances: 8 },
  { algorithm: "sliding-counter", limit: 5_000, instances: 8 },
];

/** @param {Load} load */
const isBucket = ({ algorithm }) => algorithm === "token-bucket" || algorithm === "gcra";

/** Where the bars of utilisation and of the worst window are held; of the others docs/reservations.md says why not. @param {Load} load */
const isHeld = (load) => isBucket(load) || (load.algorithm === "fixed-window" && load.limit === 50_000);

/** @param {{ url: string, admin: any }} redis @param {{ quick: boolean }} options */
export async function reservationsSection(redis, { quick }) {
  await redis.admin.flushall();
  const windows = WARM_UP_WINDOWS + (quick ? 3 : 10);
  const rows = [];
  // Some side by side, each alone on its budget; not all: a process that falls behind measures itself.
  for (let part = 0; part < PARTS; part++) {
    const own = loads.filter((_, i) => i % PARTS === part);
    rows.push(...(await Promise.all(own.map((load) => run(redis.url, load, windows)))));
  }
  return { rows, ideal: quick ? undefined : frontier(lengths.generatedTokens) };
}

/** @param {string} url @param {Load} load @param {number} windows */
async function run(url, load, windows) {
  const { algorithm, limit, instances } = load;
  const counts = { refused: 0, admitted: 0, cut: 0, charged: 0, cost: 0 };
  /** As the limiter counts: what was held at the check, the rest with the extensions. @type {Use[]} */
  const uses = [];
  /** All that a request cost, at its check: what the bound is about. @type {Use[]} */
  const admissions = [];
  const rule = {
    id: `tokens-${algorithm}-${limit}-${instances}`,
    key: ["org"],
    algorithm,
    limit,
    window: `${WINDOW_MS}ms`,
    cost: { attribute: "tokens" },
    estimate: { attribute: "max_tokens", default: 400, ttl: "1m" },
  };
  const fleet = Array.from({ length: instances }, () => {
    const watched = watch(redisStore(url, { deadlineMs: 30_000, rememberRefusals: false }));
    const limiter = createLimiter({ store: watched.store, instances, rules: [/** @type {any} */ (rule)] });
    return { limiter, watched };
  });
  await teach(url, /** @type {any} */ (rule));
  await Promise.all(fleet.map(learn));
  // With a window: fixed ones are used up in their first half.
  const startMs = Math.ceil(Date.now() / WINDOW_MS) * WINDOW_MS;
  const endMs = startMs + windows * WINDOW_MS;
  /** @type {Promise<void>[]} */
  const streams = [];
  await Promise.all(
    fleet.map(async (instance) => {
      const perMs = (OVERLOAD * limit) / meanTokens / WINDOW_MS / instances;
      for (let atMs = startMs; atMs < endMs; ) {
        atMs += -Math.log(1 - Math.random()) / perMs;
        await sleep(atMs - Date.now());
        streams.push(stream(instance, rule.id, { counts, uses, admissions }));
      }
    }),
  );
  await Promise.all(streams);
  await Promise.all(fleet.map(({ limiter }) => limiter.close()));
  const calls = fleet.reduce((sum, { watched }) => sum + watched.calls, 0);
  for (const list of [uses, admissions]) list.sort((a, b) => a.atMs - b.atMs);
  const judged = { algorithm, limit, windowMs: WINDOW_MS };
  const fromMs = startMs + WARM_UP_WINDOWS * WINDOW_MS;
  const used = uses.reduce((sum, { atMs, tokens }) => (atMs >= fromMs && atMs < endMs ? sum + tokens : sum), 0);
  return {
    ...load,
    over: worstOver(uses, judged) / limit,
    overWhereAdmitted: worstOver(admissions, judged) / limit,
    overAsProduced: worstProduced(admissions, { ...judged, tokensPerMs: TOKENS_PER_MS }) / limit,
    utilisation: used / (limit * (windows - WARM_UP_WINDOWS)),
    callsPerRequest: (calls - counts.refused) / counts.admitted,
    ...counts,
  };
}

/** Settles requests of many keys, each alone under its limit. @param {string} url @param {import("sluice").Rule} rule */
async function teach(url, rule) {
  const limiter = createLimiter({ store: redisStore(url, { deadlineMs: 30_000 }), rules: [rule] });
  await limiter.ready();
  await Promise.all(
    Array.from({ length: LEARNED }, async (_, i) => {
      const { reservation } = await limiter.check({ org: `pupil-${i}`, max_tokens: 4_096 });
      await limiter.settle(reservation?.id ?? "", { tokens: answerLength() });
    }),
  );
  await limiter.close();
}

/** The first estimate of an instance asks the store what is known. @param {{ limiter: import("sluice").Limiter, watched: ReturnType<typeof watch> }} instance */
async function learn({ limiter, watched }) {
  await limiter.ready();
  for (let held = Number.POSITIVE_INFINITY; held > 2_000; ) {
    const { reservation } = await limiter.check({ org: "first", max_tokens: 2_001 });
    held = Object.values(reservation?.held ?? {})[0] ?? 0;
    if (reservation !== undefined) await limiter.cancel(reservation.id);
  }
  watched.calls = 0;
}

/**
 * @param {{ limiter: import("sluice").Limiter, watched: ReturnType<typeof watch> }} instance
 * @param {string} rule @param {{ counts: any, uses: Use[], admissions: Use[] }} into
 */
async function stream({ limiter, watched }, rule, { counts, uses, admissions }) {
  const tokens = answerLength();
  const checking = limiter.check({ org: "acme", max_tokens: 4_096 });
  const checked = watched.lastReply;
  const { reservation } = await checking;
  const beganMs = Date.now();
  if (reservation === undefined) {
    counts.refused++;
    return;
  }
  counts.admitted++;
  let held = reservation.held[rule] ?? 0;
  const { nowMs: atMs } = await checked;
  admissions.push({ atMs, tokens });
  uses.push({ atMs, tokens: Math.min(tokens, held) });
  while (held < tokens) {
    await sleep(beganMs + held / TOKENS_PER_MS - Date.now());
    const more = held + Math.max(FEWEST_MORE, Math.ceil(held / 4));
    const extending = limiter.extend(reservation.id, { tokens: more });
    const extended = watched.lastReply;
    if (!(await extending).allowed) counts.cut++;
    uses.push({ atMs: (await extended).nowMs, tokens: Math.min(tokens, more) - held });
    held = more;
  }
  await sleep(beganMs + tokens / TOKENS_PER_MS - Date.now());
  const { charged } = await limiter.settle(reservation.id, { tokens });
  counts.cost += tokens;
  counts.charged += charged[rule] ?? 0;
}

/**
 * Counts the calls that reservations make to the store, and shows its replies: they tell when Redis decided, which the process, busy with
 * whole fleets, hears of later. A limiter calls its store before it returns a promise. @param {any} store
 */
function watch(store) {
  const watched = { store, calls: 0, lastReply: Promise.resolve({ nowMs: 0 }) };
  for (const name of ["decide", "settle", "extend", "learn"]) {
    const call = store[name].bind(store);
    store[name] = (/** @type {any[]} */ ...args) => {
      watched.calls++;
      watched.lastReply = call(...args);
      return watched.lastReply;
    };
  }
  return watched;
}

/** @param {number} ms @returns {Promise<void>} */
const sleep = (ms) => new Promise((resolve) => (ms > 0 ? setTimeout(resolve, ms) : resolve()));

const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(2)} %`;

/** @param {readonly { deviations: number, over: number, utilisation: number }[]} margins */
function cellsOf(margins) {
  return margins
    .map(({ deviations, over, utilisation }) => `${deviations}: ${percent(over)}, ${utilisation.toFixed(3)}`)
    .join(" · ");
}

/** @param {Awaited<ReturnType<typeof reservationsSection>>} section */
export function printReservations({ rows, ideal }) {
  console.log("\nReservations on Redis: demand twice the limit, time twenty times as fast");
  for (const row of rows) {
    const { algorithm, limit, instances, over, overWhereAdmitted, overAsProduced } = row;
    const { utilisation, callsPerRequest, cut, admitted } = row;
    console.log(
      `  ${algorithm}, ${limit} a minute, ${instances} instances: beyond the limit at worst ${percent(over)} ` +
        `(${percent(overWhereAdmitted)} if all is counted where it was admitted, ` +
        `${percent(overAsProduced)} if each token when it was produced), ` +
        `utilisation ${utilisation.toFixed(3)}, ${callsPerRequest.toFixed(2)} calls a request, ${cut} of ${admitted} cut`,
    );
  }
  if (ideal === undefined) return;
  console.log("  No policy for windows has fewer of them more than 1 % beyond the limit, counted where admitted");
  for (const { limit, utilisation, share } of ideal.bounds)
    console.log(`    ${limit} a minute, utilisation ${utilisation}: ${percent(share)} of the windows`);
  console.log(
    `    ${ideal.never.limit} a minute, none beyond it: utilisation at most ${ideal.never.utilisation.toFixed(3)}`,
  );
  console.log(
    "  A policy that knows the distribution and how far each stream is, in virtual time, by its margin in deviations",
  );
  for (const { algorithm, limit, margins } of ideal.informed)
    console.log(`    ${algorithm}, ${limit} a minute: ${cellsOf(margins)}`);
  console.log("  The same where a token counts when it is produced");
  for (const { limit, margins } of ideal.metered)
    console.log(`    rolling-window, ${limit} a minute: ${cellsOf(margins)}`);
}

/** @param {Awaited<ReturnType<typeof reservationsSection>>} section */
export function reservationsBars({ rows }) {
  /** @type {{ what: string, wanted: string, measured: number, met: boolean }[]} */
  const bars = [];
  for (const limit of [50_000, 5_000]) {
    const own = rows.filter((row) => row.limit === limit);
    const held = own.filter(isHeld);
    const worst = Math.max(...held.map(({ over }) => over));
    const least = Math.min(...held.map(({ utilisation }) => utilisation));
    const most = Math.max(...own.map(({ callsPerRequest }) => callsPerRequest));
    const wanted = limit === 50_000 ? 0.99 : 0.95;
    const which = limit === 50_000 ? "bucket, GCRA, fixed window" : "bucket, GCRA";
    const what = `reservations, ${which}, ${limit} a minute on 1 to 8 instances:`;
    bars.push({ what: `${what} beyond the limit`, wanted: "at most 0.01", measured: worst, met: worst <= 0.01 });
    bars.push({ what: `${what} utilisation`, wanted: `at least ${wanted}`, measured: least, met: least >= wanted });
    bars.push({ what: `${what} store calls a request`, wanted: "at most 2.3", measured: most, met: most <= 2.3 });
  }
  const rolling = rows.filter(({ algorithm, limit }) => algorithm === "rolling-window" && limit === 50_000);
  const beyond = Math.max(...rolling.map(({ over }) => over));
  const used = Math.min(...rolling.map(({ utilisation }) => utilisation));
  const whatRolls = "reservations, rolling window, 50000 a minute:";
  bars.push({ what: `${whatRolls} beyond the limit`, wanted: "at most 0.01", measured: beyond, met: beyond <= 0.01 });
  bars.push({ what: `${whatRolls} utilisation`, wanted: "at least 0.99", measured: used, met: used >= 0.99 });
  const cut = rows.reduce((sum, row) => sum + row.cut, 0);
  bars.push({ what: "reservations: streams cut under finish", wanted: "at most 0", measured: cut, met: cut === 0 });
  const lost = rows.reduce((sum, row) => sum + Math.abs(row.charged - row.cost), 0);
  bars.push({ what: "reservations: charged against used", wanted: "at most 0", measured: lost, met: lost === 0 });
  return bars;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const redis = await startRedis();
  try {
    const section = await reservationsSection(redis, { quick: process.argv.includes("--quick") });
    printReservations(section);
    printBars(reservationsBars(section));
  } finally {
    await redis.stop();
  }
}
