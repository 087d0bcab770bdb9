/**
 * A fleet's history, in the Redis that holds the counters: every instance adds to it and reads the same numbers.
 * One hash per step, with a field per series that holds its packed counts (`packed-counts.ts`), merged by a script. All keys share a hash
 * tag, so that on a cluster they are on one node. Every key has a TTL; at most 1000 series per step.
 *
 * Calls have a deadline (`instance/redis-client.ts`). A failed write is counted in `lost` and never thrown; a failed read rejects.
 */
import type { RedisClient } from "../../instance/redis-client.js";
import { type RedisKeys, redisKeys } from "../../instance/redis-keys.js";
import {
  type History,
  MOST_SERIES,
  OTHER_SERIES,
  type Point,
  type SeriesCounts,
  type Step,
  stepAt,
  stepNames,
  steps,
  TOTAL_SERIES,
} from "./history.js";
import { packCounts, unpackCounts } from "./packed-counts.js";

/** KEYS: one hash per step. ARGV: each TTL (ms), maximum number of series, the names of others and total, seconds, then series, counts … */
const ADD = `
local function merge(one, other)
  local sums, order = {}, {}
  for _, text in ipairs({one, other}) do
    for name, count in string.gmatch(text, '(%w+)=(%d+)') do
      if not sums[name] then sums[name] = 0; order[#order + 1] = name end
      sums[name] = sums[name] + tonumber(count)
    end
  end
  for i, name in ipairs(order) do order[i] = name .. '=' .. string.format('%.0f', sums[name]) end
  return table.concat(order, ' ')
end
local most, other, total, seconds = tonumber(ARGV[#KEYS + 1]), ARGV[#KEYS + 2], ARGV[#KEYS + 3], ARGV[#KEYS + 4]
local marks = seconds ~= '0' and not string.find(' ' .. (redis.call('HGET', KEYS[1], total) or ''), ' t=', 1, true)
for k, key in ipairs(KEYS) do
  if marks then redis.call('HSET', key, total, merge(redis.call('HGET', key, total) or '', 't=' .. seconds)) end
  local held = redis.call('HLEN', key)
  for i = #KEYS + 5, #ARGV, 2 do
    local series = ARGV[i]
    local before = redis.call('HGET', key, series)
    if not before and held >= most and series ~= total then
      series = other
      before = redis.call('HGET', key, series)
    end
    if not before then held = held + 1 end
    redis.call('HSET', key, series, before and merge(before, ARGV[i + 1]) or ARGV[i + 1])
  end
  redis.call('PEXPIRE', key, ARGV[k])
end`;

/** Bounds how long one call blocks Redis to about a millisecond. */
const SERIES_PER_CALL = 64;
const STEPS_PER_READ = 4;

export class RedisHistory implements History {
  readonly #redis: RedisClient;
  readonly #keys: RedisKeys;
  #lost = 0;

  constructor(redis: RedisClient, keys = redisKeys()) {
    this.#redis = redis;
    this.#keys = keys;
  }

  get lost(): number {
    return this.#lost;
  }

  async add(atMs: number, counts: readonly SeriesCounts[], seconds = 0): Promise<void> {
    const keys = stepNames.map((step) => this.#keys.historyStep(step, stepAt(step, atMs)));
    const kept = stepNames.map((step) => steps[step].keepMs);
    for (let i = 0; i < counts.length || (i === 0 && seconds > 0); i += SERIES_PER_CALL) {
      const packed = counts
        .slice(i, i + SERIES_PER_CALL)
        .flatMap(({ series, counts: counted }) => [series, packCounts(counted)]);
      const marked = i === 0 ? seconds : 0;
      const args = [...keys, ...kept, MOST_SERIES, OTHER_SERIES, TOTAL_SERIES, marked, ...packed];
      try {
        await this.#redis.eval(ADD, keys.length, ...args);
      } catch {
        // Give up the remaining calls: each would wait as long, and with a thousand rules the shutdown would take eight seconds.
        this.#lost += Math.max(1, Math.ceil((counts.length - i) / SERIES_PER_CALL));
        return;
      }
    }
  }

  async read(step: Step, { fromMs, toMs }: { fromMs: number; toMs: number }): Promise<Map<string, Point[]>> {
    const read = new Map<string, Point[]>();
    const { lengthMs, keepMs } = steps[step];
    const oldestMs = Math.max(fromMs, Date.now() - keepMs);
    const starts: number[] = [];
    const firstMs = stepAt(step, oldestMs + lengthMs - 1);
    for (let atMs = firstMs; atMs < toMs && starts.length <= keepMs / lengthMs; atMs += lengthMs) starts.push(atMs);
    for (let i = 0; i < starts.length; i += STEPS_PER_READ) {
      const slice = starts.slice(i, i + STEPS_PER_READ);
      const hashes = await Promise.all(slice.map((atMs) => this.#redis.hgetall(this.#keys.historyStep(step, atMs))));
      for (const [at, hash] of hashes.entries()) {
        for (const [series, packed] of Object.entries(hash)) {
          const points = read.get(series) ?? [];
          points.push({ atMs: slice[at]!, counts: unpackCounts(packed) });
          read.set(series, points);
        }
      }
    }
    return read;
  }

  close(): Promise<void> {
    this.#redis.disconnect();
    return Promise.resolve();
  }
}
