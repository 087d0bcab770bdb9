/** Runs contestants in turn, several times, and gives medians: what the machine does meanwhile, it does to all of them. */

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** @param {number[]} values */
export function spread(values) {
  const middle = median(values);
  return middle === 0 ? 0 : (Math.max(...values) - Math.min(...values)) / middle;
}

/**
 * Sends `count` decisions with `inFlight` of them under way at any time.
 * @param {{ count: number, inFlight: number, redis?: { cpuUs(): Promise<number> } }} load
 * @param {(n: number) => unknown} decide
 */
export async function drive({ count, inFlight, redis }, decide) {
  const latencies = new Float64Array(count);
  const redisBefore = redis ? await redis.cpuUs() : 0;
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  let next = 0;
  const one = async () => {
    while (next < count) {
      const n = next++;
      const sentMs = performance.now();
      await decide(n);
      latencies[n] = performance.now() - sentMs;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  const tookMs = performance.now() - startMs;
  const cpu = process.cpuUsage(cpuBefore);
  const redisUs = redis ? (await redis.cpuUs()) - redisBefore : 0;
  latencies.sort();
  return {
    perSecond: (count / tookMs) * 1000,
    nodeUs: (cpu.user + cpu.system) / count,
    redisUs: redisUs / count,
    p50Us: (latencies[Math.floor(count * 0.5)] ?? 0) * 1000,
    p99Us: (latencies[Math.floor(count * 0.99)] ?? 0) * 1000,
  };
}

/**
 * @template T
 * @param {Record<string, () => Promise<Record<string, number>>>} contestants
 * @param {number} repetitions
 */
export async function interleaved(contestants, repetitions) {
  return mediansOf(await roundsOf(contestants, repetitions));
}

/** The figures of every round, by contestant. @param {Record<string, () => Promise<Record<string, number>>>} contestants @param {number} repetitions */
export async function roundsOf(contestants, repetitions) {
  /** @type {Record<string, Record<string, number>[]>} */
  const runs = {};
  // One round to warm up, not counted.
  for (let round = 0; round <= repetitions; round++) {
    for (const [name, run] of Object.entries(contestants)) {
      const figures = await run();
      if (round === 0) continue;
      runs[name] ??= [];
      runs[name].push(figures);
    }
  }
  return runs;
}

/** @param {Record<string, Record<string, number>[]>} runs */
export function mediansOf(runs) {
  /** @type {Record<string, Record<string, number>>} */
  const medians = {};
  for (const [name, figures] of Object.entries(runs)) {
    const measures = Object.keys(figures[0] ?? {});
    medians[name] = Object.fromEntries(
      measures.map((measure) => [measure, median(figures.map((run) => run[measure] ?? 0))]),
    );
    medians[name].spread = spread(figures.map((run) => run.perSecond ?? 0));
  }
  return medians;
}
