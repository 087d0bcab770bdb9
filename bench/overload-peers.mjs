/**
 * What others have published against overload, as contestants of `overload-model.mjs`: no limiter, a static limit, and two estimators of
 * a concurrency limit from latency. From their formulas, with their defaults; none of them knows classes.
 */

/** @typedef {import("./overload-model.mjs").Contestant} Contestant */

/** @param {() => number} limit @param {(nowMs: number, latencyMs: number, inFlight: number) => void} [learn] @returns {Contestant} */
function limited(limit, learn) {
  let inFlight = 0;
  return {
    admit(nowMs) {
      if (inFlight >= limit()) return undefined;
      inFlight++;
      return { nowMs };
    },
    end(pass, nowMs) {
      learn?.(nowMs, nowMs - /** @type {{ nowMs: number }} */ (pass).nowMs, inFlight);
      inFlight--;
    },
    limit,
  };
}

/** @returns {Contestant} */
export function noLimiter() {
  return limited(() => Number.POSITIVE_INFINITY);
}

/** @param {number} places @returns {Contestant} */
export function staticLimit(places) {
  return limited(() => places);
}

/**
 * Netflix concurrency-limits, Gradient2: the long-term average of the latency over its present one; at most 200 places.
 * @returns {Contestant}
 */
export function gradient2() {
  let limit = 20;
  let long = 0;
  let windows = 0;
  let since = 0;
  let sum = 0;
  let count = 0;
  return limited(
    () => limit,
    (nowMs, latencyMs, inFlight) => {
      sum += latencyMs;
      count++;
      if (nowMs - since < 1_000 || count < 10) return;
      const short = sum / count;
      [since, sum, count] = [nowMs, 0, 0];
      windows++;
      // An average over 600 windows, warmed up over the first ten.
      long = windows <= 10 ? (long * (windows - 1) + short) / windows : long + ((short - long) * 2) / 601;
      if (long / short > 2) long *= 0.95;
      if (inFlight < limit / 2) return;
      const gradient = Math.max(0.5, Math.min(1, (1.5 * long) / short));
      limit = Math.max(20, Math.min(200, limit * 0.8 + (limit * gradient + 4) * 0.2));
    },
  );
}

/**
 * Envoy's adaptive concurrency: the lowest latency, measured with 3 places every minute, over the present one; headroom sqrt(limit).
 * @param {() => number} random
 * @returns {Contestant}
 */
export function envoyGradient(random) {
  let limit = 3;
  let kept = 20;
  let least = 0;
  let isProbing = true;
  let nextProbeMs = 0;
  let since = 0;
  /** @type {number[]} */
  let samples = [];
  const median = () => /** @type {number} */ (samples.sort((a, b) => a - b)[samples.length >> 1]);
  return limited(
    () => limit,
    (nowMs, latencyMs) => {
      samples.push(latencyMs);
      if (isProbing) {
        if (samples.length < 50) return;
        least = median();
        samples = [];
        isProbing = false;
        nextProbeMs = nowMs + 60_000 * (1 + 0.15 * random());
        limit = kept;
        return;
      }
      if (nowMs - since < 100 || samples.length < 5) return;
      const gradient = Math.max(0.5, Math.min(2, (least * 1.25) / median()));
      [since, samples] = [nowMs, []];
      limit = Math.max(3, Math.min(1_000, limit * gradient + Math.sqrt(limit)));
      if (nowMs <= nextProbeMs) return;
      isProbing = true;
      kept = limit;
      limit = 3;
    },
  );
}

/** Requests that it lets through at once after a lull: with few, a load below the capacity would not fill its crests. */
const MOST_CREDIT = 20;

/**
 * No one's limiter: what it lets through swings around three fifths of what the places can do, by a sine. It is there to be caught: a measure of
 * oscillation that passes it sees nothing.
 * @param {import("./overload-model.mjs").Scenario} scenario @param {{ swing: number, periodMs: number, phase: number }} sine `phase`: in periods
 * @returns {Contestant}
 */
export function swinging({ places, slowness = () => 1, meanMs = 20 }, { swing, periodMs, phase }) {
  let credit = 0;
  let sinceMs = 0;
  return {
    admit(nowMs) {
      const pace = 0.6 * (1 + swing * Math.sin(2 * Math.PI * (nowMs / periodMs + phase)));
      credit = Math.min(MOST_CREDIT, credit + ((nowMs - sinceMs) * pace * places) / meanMs / slowness(nowMs / 1000));
      sinceMs = nowMs;
      if (credit < 1) return undefined;
      credit -= 1;
      return {};
    },
    end() {},
  };
}
