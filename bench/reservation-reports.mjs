/**
 * A policy for rolling windows that counts a token when it is produced, as far as the store can know it: from reports of how far streams
 * are. Seeded, in virtual time; a model, not the product (docs/decisions/0040).
 *
 *   node bench/reservation-reports.mjs [seeds]
 *
 * The store keeps the use by bucket of time: what was reported, spread over the time since the report before, and what is expected, by the
 * speed of the stream up to the quantile of what requests cost that came so far. A check is admitted if at each of a few instants ahead the
 * window that ends there is within the limit. Reports are made
 *   `none`   never: the stream extends its reservation where it reaches what is expected, and is settled at its end, as today
 *   `batch`  by a call of each instance for all its streams, as often as 2.25 calls a request allow
 *   `ride`   with the calls that the instance makes anyway, refused checks too; of a stream once a second, and of 32 streams a call
 * The judge knows better than the store: it counts each token at the instant at which it was really produced.
 */
import { readFileSync } from "node:fs";
import { drawn, generator } from "./reservation-frontier.mjs";
import { Events, Profile } from "./reservation-timeline.mjs";

const WINDOW_S = 60;
const TOKENS_PER_S = 50;
const OVERLOAD = 2;
const WARM_UP_MINUTES = 3;
const CALLS_OF_BATCHES = 0.25;
const REPORT_EVERY_S = 1;
const MOST_A_CALL = 32;
const AHEAD_S = [0, 1, 2, 4, 8, 16];
/** Of the record that the store keeps, and of the judge's. */
const BUCKET_S = 0.5;
const JUDGE_S = 0.1;
/** A stream that is settled late goes on so long beyond the last minute at most. */
const DRAIN_S = 1_200;
/** Of fewer tokens a speed says nothing. */
const FEWEST_TO_TELL_SPEED = 20;

/** @typedef {"none" | "batch" | "ride"} Reports */
/**
 * `spread`: standard deviation of the logarithm of streams' speeds; above 0, their first token comes up to a second late.
 * `margin`: of the limit, that is kept free.
 * @typedef {{ limit: number, instances: number, reports: Reports, spread: number, margin: number, quantile: number }} Policy
 */
/**
 * `reported` units until `reportedS`, then `speed` until `expected` are reached.
 * @typedef {{ atS: number, beginsS: number, realSpeed: number, tokens: number, instance: number,
 *   reported: number, reportedS: number, speed: number, expected: number }} Stream
 */

/** @param {readonly number[]} lengths in order @param {Policy} policy @param {readonly number[]} seeds */
export function withReports(lengths, policy, seeds) {
  const expectedOf = quantileBeyond(lengths, policy.quantile);
  const runs = seeds.map((seed) => play(lengths, expectedOf, policy, generator(seed)));
  return {
    over: Math.max(...runs.map(({ over }) => over)),
    least: Math.min(...runs.map(({ utilisation }) => utilisation)),
    utilisation: runs.reduce((sum, { utilisation }) => sum + utilisation, 0) / runs.length,
    calls: Math.max(...runs.map(({ calls }) => calls)),
  };
}

/** @param {readonly number[]} lengths @param {(tokens: number) => number} expectedOf @param {Policy} policy @param {() => number} random */
function play(lengths, expectedOf, policy, random) {
  const { limit, instances, reports } = policy;
  const mean = lengths.reduce((sum, tokens) => sum + tokens, 0) / lengths.length;
  const endS = (limit < 10_000 ? 60 : 12) * WINDOW_S;
  const produced = new Profile(JUDGE_S, endS + DRAIN_S);
  const events = new Events();
  const fleet = new Fleet(policy, expectedOf, endS);

  const arrive = () => {
    if (events.nowS >= endS) return;
    events.at(events.nowS - Math.log(1 - random()) / ((OVERLOAD * limit) / mean / WINDOW_S), arrive);
    const stream = fleet.check(events.nowS, someStream(lengths, policy, events.nowS, random));
    if (stream === undefined) return;
    const streamEndS = stream.beginsS + stream.tokens / stream.realSpeed;
    produced.add(stream.beginsS, streamEndS, stream.tokens);
    events.at(streamEndS, () => fleet.settle(events.nowS, stream));
    extendWhenReached(stream);
  };
  const extendWhenReached = (/** @type {Stream} */ stream) => {
    if (reports !== "none" || stream.expected >= stream.tokens) return;
    events.at(stream.beginsS + stream.expected / stream.realSpeed, () => {
      fleet.extend(events.nowS, stream);
      extendWhenReached(stream);
    });
  };
  events.at(0, arrive);
  const everyS = instances / (CALLS_OF_BATCHES * (limit / mean / WINDOW_S));
  for (let i = 0; reports === "batch" && i < instances; i++) {
    const batch = () => {
      if (events.nowS < endS) events.at(events.nowS + everyS, batch);
      fleet.batch(events.nowS, i);
    };
    events.at(everyS * random(), batch);
  }
  events.run();
  const fromS = WARM_UP_MINUTES * WINDOW_S;
  return {
    over: produced.worst(WINDOW_S, endS) / limit - 1,
    utilisation: produced.sum(fromS, endS) / ((limit * (endS - fromS)) / WINDOW_S),
    calls: fleet.calls / fleet.admitted,
  };
}

/** As it arrives: what the store expects of it is set at its check. @param {readonly number[]} lengths @param {Policy} policy @param {number} nowS @param {() => number} random @returns {Stream} */
function someStream(lengths, { instances, spread }, nowS, random) {
  const tokens = lengths[Math.floor(random() * lengths.length)] ?? 0;
  const instance = Math.floor(random() * instances);
  const realSpeed = TOKENS_PER_S * Math.exp(spread * normal(random) - (spread * spread) / 2);
  const beginsS = nowS + (spread > 0 ? random() : 0);
  return { atS: nowS, beginsS, realSpeed, tokens, instance, reported: 0, reportedS: nowS, speed: 1, expected: 0 };
}

/** The instances and their store: what they know of streams, and the calls that it takes. */
class Fleet {
  calls = 0;
  admitted = 0;
  #policy;
  #expectedOf;
  #known;
  /** @type {Set<Stream>[]} */
  #open;
  /** As each instance has seen streams come. @type {number[]} */
  #speeds;

  /** @param {Policy} policy @param {(tokens: number) => number} expectedOf @param {number} endS */
  constructor(policy, expectedOf, endS) {
    this.#policy = policy;
    this.#expectedOf = expectedOf;
    this.#known = new Profile(BUCKET_S, endS + DRAIN_S);
    this.#open = Array.from({ length: policy.instances }, () => new Set());
    this.#speeds = Array.from({ length: policy.instances }, () => TOKENS_PER_S);
  }

  /** Undefined if it is refused. @param {number} nowS @param {Stream} stream */
  check(nowS, stream) {
    const { limit, margin } = this.#policy;
    this.#ride(nowS, stream.instance);
    stream.speed = Math.max(1, this.#speeds[stream.instance] ?? TOKENS_PER_S);
    stream.expected = this.#expectedOf(0);
    const fits = AHEAD_S.every((aheadS) => {
      const atS = nowS + aheadS;
      const more = Math.min(stream.expected, aheadS * stream.speed);
      return this.#known.sum(atS - WINDOW_S, atS) + more <= limit * (1 - margin);
    });
    if (!fits) return undefined;
    this.admitted++;
    this.calls++;
    this.#open[stream.instance]?.add(stream);
    this.#expect(stream, 1);
    return stream;
  }

  /** @param {number} nowS @param {Stream} stream */
  extend(nowS, stream) {
    this.calls++;
    this.#report(nowS, stream, false);
  }

  /** @param {number} nowS @param {Stream} stream */
  settle(nowS, stream) {
    const { instance, atS, tokens } = stream;
    this.calls++;
    this.#open[instance]?.delete(stream);
    this.#report(nowS, stream, true);
    const before = this.#speeds[instance] ?? TOKENS_PER_S;
    this.#speeds[instance] = before + 0.1 * (tokens / Math.max(0.2, nowS - atS) - before);
    this.#ride(nowS, instance);
  }

  /** @param {number} nowS @param {number} instance */
  batch(nowS, instance) {
    if ((this.#open[instance]?.size ?? 0) > 0) this.calls++;
    for (const stream of this.#open[instance] ?? []) this.#report(nowS, stream, false);
  }

  /** @param {number} nowS @param {number} instance */
  #ride(nowS, instance) {
    if (this.#policy.reports !== "ride") return;
    let left = MOST_A_CALL;
    for (const stream of this.#open[instance] ?? []) {
      if (nowS - stream.reportedS < REPORT_EVERY_S) continue;
      this.#report(nowS, stream, false);
      if (--left === 0) break;
    }
  }

  /** @param {number} nowS @param {Stream} stream @param {boolean} isLast */
  #report(nowS, stream, isLast) {
    const used = isLast ? stream.tokens : usedBy(stream, nowS);
    this.#expect(stream, -1);
    this.#known.add(stream.reportedS, nowS, used - stream.reported);
    stream.reported = used;
    stream.reportedS = nowS;
    if (used >= FEWEST_TO_TELL_SPEED) stream.speed = Math.max(1, used / (nowS - stream.atS));
    stream.expected = isLast ? used : Math.max(used + 1, this.#expectedOf(used));
    this.#expect(stream, 1);
  }

  /** @param {Stream} stream @param {1 | -1} sign */
  #expect({ reportedS, reported, speed, expected }, sign) {
    this.#known.add(reportedS, reportedS + (expected - reported) / speed, sign * (expected - reported));
  }
}

/** @param {Stream} stream @param {number} nowS */
function usedBy({ beginsS, realSpeed, tokens }, nowS) {
  return Math.max(0, Math.min(tokens, (nowS - beginsS) * realSpeed));
}

/** The quantile of the costs above so many tokens. @param {readonly number[]} lengths in order @param {number} quantile */
function quantileBeyond(lengths, quantile) {
  const longest = lengths.at(-1) ?? 0;
  const byTokens = new Float64Array(longest + 1);
  let first = 0;
  for (let tokens = 0; tokens <= longest; tokens++) {
    while (first < lengths.length && (lengths[first] ?? 0) <= tokens) first++;
    const at = Math.floor(first + (lengths.length - first) * quantile);
    byTokens[tokens] = lengths[Math.min(lengths.length - 1, at)] ?? tokens;
  }
  return (/** @type {number} */ tokens) => byTokens[Math.min(longest, Math.floor(tokens))] ?? longest;
}

/** @param {() => number} random */
function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** @param {Policy} policy @param {readonly number[]} seeds @param {readonly number[]} lengths */
function row(policy, seeds, lengths) {
  const { limit, instances, reports, spread, margin, quantile } = policy;
  const { over, utilisation, least, calls } = withReports(lengths, policy, seeds);
  console.log(
    `| ${limit} | ${instances} | ${reports} | ${spread} | ${100 * margin} % | ${quantile} | ${(100 * over).toFixed(2)} % | ` +
      `${utilisation.toFixed(4)} | ${least.toFixed(4)} | ${calls.toFixed(2)} |`,
  );
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const { generatedTokens } = JSON.parse(readFileSync(new URL("llm-lengths.json", import.meta.url), "utf8"));
  const lengths = drawn(generatedTokens);
  const seeds = Array.from({ length: Number(process.argv[2] ?? 20) }, (_, i) => 1_000 + i);
  console.log(
    "| limit | instances | reports | spread | margin | quantile | worst window | utilisation | least | calls |",
  );
  console.log("|---|---|---|---|---|---|---|---|---|---|");
  /** @type {Reports[]} */
  const kinds = ["none", "batch", "ride"];
  for (const spread of [0, 0.3])
    for (const reports of kinds)
      for (const instances of [1, 2, 4, 8])
        row({ limit: 50_000, instances, reports, spread, margin: 0.005, quantile: 0.9 }, seeds, lengths);
  for (const quantile of [0.9, 0.999])
    row({ limit: 5_000, instances: 8, reports: "ride", spread: 0, margin: 0, quantile }, seeds, lengths);
}
