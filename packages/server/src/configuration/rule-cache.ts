/**
 * The rules in force, kept in Redis with a time to live, and the channel on which a change is announced. The only file of the
 * service that touches a Redis client for rules.
 * The cache is a convenience: what it returns is checked by its reader, and when it is away the database serves.
 */
import { startHeartbeat } from "sluice/internal";
import type { TlsOptions } from "sluice/redis";
import { type RedisClient, redisClient } from "../instance/redis-client.js";
import { type RedisKeys, redisKeys } from "../instance/redis-keys.js";
import type { VersionMark } from "./repository/rule-repository.js";

export interface CachedDocument extends VersionMark {
  readonly document: string;
}

interface RuleCacheOptions {
  readonly url: string;
  readonly tls?: TlsOptions;
  /** `--store-prefix`. */
  readonly prefix?: string | undefined;
  readonly ttlMs: number;
  /** A version was announced. */
  readonly onAnnounced: (version: number) => void;
  /** Redis can be reached: for the first time, or again. Announcements may have been missed. */
  readonly onReady: () => void;
}

/**
 * Writes unless a newer version is there: two editors may reach Redis in the other order than the database. ARGV: version,
 * digest, createdAtMs, document, ttlMs, and 1 to write whatever is there (the database went back, by a restore).
 */
const WRITE = `
local held = tonumber(redis.call('HGET', KEYS[1], 'version') or '0') or 0
if ARGV[6] ~= '1' and held > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'digest', ARGV[2], 'createdAtMs', ARGV[3], 'document', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1`;

export class RuleCache {
  readonly #commands: RedisClient;
  readonly #subscriber: RedisClient;
  readonly #subscription: { stop(): void };
  readonly #ttlMs: number;
  readonly #keys: RedisKeys;

  constructor({ url, tls = {}, prefix, ttlMs, onAnnounced, onReady }: RuleCacheOptions) {
    this.#ttlMs = ttlMs;
    this.#keys = redisKeys(prefix);
    this.#commands = redisClient(url, { tls });
    this.#subscriber = redisClient(url, { tls });
    this.#commands.on("ready", onReady);
    this.#subscriber.on("ready", () => {
      this.#subscriber.subscribe(this.#keys.rulesChannel).then(onReady, () => undefined);
    });
    this.#subscription = keepSubscription(this.#subscriber, this.#keys.rulesChannel);
    this.#subscriber.on("message", (_channel: string, message: string) => {
      const version = Number(message);
      if (Number.isSafeInteger(version)) onAnnounced(version);
    });
  }

  get isUp(): boolean {
    return this.#commands.status === "ready";
  }

  /** Waits for the first connection, no longer than told. */
  async settled(patienceMs: number): Promise<void> {
    if (this.isUp) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, patienceMs);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#commands.once("ready", done);
      this.#commands.once("close", done);
    });
  }

  /** The cached version without its document; undefined if nothing complete is there. */
  async mark(): Promise<VersionMark | undefined> {
    return markOf(await this.#commands.hmget(this.#keys.rules, "version", "digest", "createdAtMs"));
  }

  async read(): Promise<CachedDocument | undefined> {
    const fields = await this.#commands.hmget(this.#keys.rules, "version", "digest", "createdAtMs", "document");
    const mark = markOf(fields);
    const document = fields[3];
    return mark === undefined || typeof document !== "string" ? undefined : { ...mark, document };
  }

  /** `over`: even over a newer version. */
  async write({ version, digest, createdAtMs, document }: CachedDocument, over = false): Promise<void> {
    const values = [version, digest, createdAtMs, document, this.#ttlMs, over ? 1 : 0];
    await this.#commands.eval(WRITE, 1, this.#keys.rules, ...values);
  }

  /** Starts the time to live anew. */
  async prolong(): Promise<void> {
    await this.#commands.pexpire(this.#keys.rules, this.#ttlMs);
  }

  async announce(version: number): Promise<void> {
    await this.#commands.publish(this.#keys.rulesChannel, String(version));
  }

  close(): void {
    this.#subscription.stop();
    this.#commands.disconnect();
    this.#subscriber.disconnect();
  }
}

const HEARTBEAT_MS = 1_000;

/**
 * Gives up a subscription that no longer answers, so that the client connects and subscribes anew. The client's own heartbeat does not
 * reach it: on a cluster a subscription has a connection of its own. To subscribe again changes nothing, and is answered.
 */
function keepSubscription(client: RedisClient, channel: string): { stop(): void } {
  let heard = 0;
  return startHeartbeat({
    everyMs: HEARTBEAT_MS,
    heard: () => (client.status === "ready" ? { connection: client, count: heard } : undefined),
    ask() {
      client.subscribe(channel).then(
        () => heard++,
        () => {},
      );
    },
    giveUp: () => client.disconnect(true),
  });
}

function markOf([version, digest, createdAtMs]: readonly (string | null)[]): VersionMark | undefined {
  const number = Number(version);
  if (!version || !digest || !Number.isSafeInteger(number)) return undefined;
  return { version: number, digest, createdAtMs: Number(createdAtMs) || 0 };
}
