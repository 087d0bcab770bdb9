/** A fleet's shared state, in the Redis that holds the counters. All keys share a hash tag, so that on a cluster they are on one node. */
import type { RedisClient } from "./redis-client.js";
import { type RedisKeys, redisKeys } from "./redis-keys.js";
import { MOST_TEXTS, type SharedState, type Swap } from "./shared-state.js";

/** KEYS: the text, the set of names. ARGV: name, 1 if a text was there, that text, the new one, TTL (ms), maximum number of names. */
const SWAP = `
local held = redis.call('GET', KEYS[1])
if ARGV[2] == '1' then
  if held ~= ARGV[3] then return 0 end
elseif held then return 0 end
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[6]) then return 0 end
  redis.call('ZADD', KEYS[2], 0, ARGV[1])
end
redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[5]) + 86400000 then redis.call('PEXPIRE', KEYS[2], ARGV[5] + 172800000) end
return 1`;

/** KEYS: the set of names, then texts. ARGV: their names. Removes a name only if its text is gone at this very moment. */
const FORGET = `
for i, name in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[i + 1]) == 0 then redis.call('ZREM', KEYS[1], name) end
end`;

/** Bounds how long one call blocks Redis to about a millisecond. */
const TEXTS_PER_READ = 32;
const FORGOTTEN_PER_NEW_NAME = 8;

export class RedisSharedState implements SharedState {
  readonly #redis: RedisClient;
  readonly #keys: RedisKeys;

  constructor(redis: RedisClient, keys = redisKeys()) {
    this.#redis = redis;
    this.#keys = keys;
  }

  async read(name: string): Promise<string | undefined> {
    return (await this.#redis.get(this.#keys.sharedText(name))) ?? undefined;
  }

  async readAll(prefix: string): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    const expired: string[] = [];
    // All scores are 0, so the set is in byte order; 0xff sorts after all of UTF-8.
    const after = Buffer.concat([Buffer.from(`(${prefix}`), Buffer.from([0xff])]);
    const names = await this.#redis.zrangebylex(this.#keys.sharedNames, `[${prefix}`, after);
    for (let i = 0; i < names.length; i += TEXTS_PER_READ) {
      const slice = names.slice(i, i + TEXTS_PER_READ);
      const texts = await this.#redis.mget(...slice.map(this.#keys.sharedText));
      for (const [at, name] of slice.entries()) {
        const text = texts[at];
        if (typeof text === "string") found.set(name, text);
        else expired.push(name);
      }
    }
    await this.#forget(expired.slice(0, TEXTS_PER_READ));
    return found;
  }

  async swap(name: string, { was, now, keepMs }: Swap): Promise<boolean> {
    const args = [name, was === undefined ? 0 : 1, was ?? "", now, keepMs, MOST_TEXTS];
    const done = await this.#redis.eval(SWAP, 2, this.#keys.sharedText(name), this.#keys.sharedNames, ...args);
    if (Number(done) !== 1) return false;
    // Each new name cleans up a few expired ones, so that unread names do not pile up.
    if (was === undefined)
      await this.#forget(await this.#redis.zrandmember(this.#keys.sharedNames, FORGOTTEN_PER_NEW_NAME));
    return true;
  }

  async #forget(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const keys = [this.#keys.sharedNames, ...names.map(this.#keys.sharedText)];
    await this.#redis.eval(FORGET, keys.length, ...keys, ...names);
  }

  close(): Promise<void> {
    this.#redis.disconnect();
    return Promise.resolve();
  }
}
