/**
 * Rules from the database, by way of the cache. Everything that may change the book in force goes through one queue, so that
 * an older version never follows a newer one.
 */
import type { Rule } from "sluice";
import { type Book, BookInForce, type BookListener, type BookSource } from "./book-in-force.js";
import type { Applied, Change, Configuration, ConfigurationOptions, ConfigurationStatus } from "./configuration.js";
import { ConfigurationError } from "./configuration-error.js";
import { digestOf, readDocument, writeDocument } from "./document-text.js";
import { Pace } from "./pace.js";
import { openRepository } from "./repository/open-repository.js";
import type { RuleRepository, VersionMark } from "./repository/rule-repository.js";
import { RuleCache } from "./rule-cache.js";
import { diffRules, isEmpty } from "./rule-diff.js";
import { Snapshot } from "./snapshot.js";
import { parseDocument } from "./validate-document.js";

const POLL_MS = 500;
const CACHE_TTL_MS = 3_600_000;
/** How long the first start waits for Redis before it goes on without. */
const REDIS_PATIENCE_MS = 1_000;
/** Changes without If-Match start over when somebody else was faster; this often. */
const APPLY_TRIES = 10;
const STARTER_AUTHOR = "sluice";

type Document = VersionMark & { readonly document: string };

export class DatabaseConfiguration implements Configuration {
  readonly repository: RuleRepository;
  readonly #options: ConfigurationOptions;
  readonly #inForce: BookInForce;
  readonly #snapshot: Snapshot;
  readonly #cache: RuleCache | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #queuedRefresh: Promise<void> | undefined;
  #poll: NodeJS.Timeout | undefined;
  #prolongAtMs = 0;
  #databaseError: string | undefined;
  /** Why the newest version is not in force; and which one that is, so that it is not validated at every poll. */
  #rejected: { readonly mark: VersionMark; readonly why: string } | undefined;
  #propagationMs: number | undefined;
  #closed = false;

  static async start(options: ConfigurationOptions, database: string): Promise<DatabaseConfiguration> {
    const configuration = new DatabaseConfiguration(options, database);
    await configuration.#start();
    return configuration;
  }

  private constructor(options: ConfigurationOptions, database: string) {
    this.#options = options;
    this.#inForce = new BookInForce(options.log);
    this.repository = openRepository(database);
    this.#snapshot = new Snapshot({ dataFolder: options.dataFolder, origin: withoutPassword(database) });
    if (options.redisUrl === undefined) return;
    this.#cache = new RuleCache({
      url: options.redisUrl,
      ttlMs: options.cacheTtlMs ?? CACHE_TTL_MS,
      onAnnounced: (version) => {
        if (version !== this.current.version) void this.refresh();
      },
      onReady: () => {
        this.#prolongAtMs = 0;
        options.onRedisReady?.();
        void this.refresh();
      },
    });
  }

  get current(): Book {
    return this.#inForce.book;
  }

  onChange(listener: BookListener): () => void {
    return this.#inForce.onChange(listener);
  }

  status(): ConfigurationStatus {
    const lastError = this.#databaseError ?? this.#rejected?.why;
    return {
      version: this.current.version,
      loaded: this.#inForce.source !== undefined,
      source: this.#inForce.source ?? "database",
      database: this.#databaseError === undefined ? "up" : "down",
      cache: this.#cache === undefined ? "none" : this.#cache.isUp ? "up" : "down",
      ...(lastError !== undefined && { lastError }),
      ...(this.#propagationMs !== undefined && { propagationMs: this.#propagationMs }),
    };
  }

  async #start(): Promise<void> {
    await this.#cache?.settled(REDIS_PATIENCE_MS);
    await this.#addStarterRules().catch((error) => this.#noteDatabase(error));
    await this.refresh();
    if (this.#inForce.source === undefined) await this.#inTurn(() => this.#startFromSnapshot());
    // From now on: what the start took is not a propagation.
    this.#propagationMs = undefined;
    this.#pollLater();
  }

  async #addStarterRules(): Promise<void> {
    const { starterRules } = this.#options;
    if (starterRules === undefined || (await this.repository.head()) !== undefined) return;
    const pace = new Pace();
    const rules = await parseDocument(starterRules, pace);
    const document = await writeDocument(rules, pace);
    const diff = await diffRules([], rules, pace);
    // Of several instances that start together one wins; the others find its version.
    await this.repository.commit({
      base: 0,
      author: STARTER_AUTHOR,
      message: "starter rules",
      kind: "starter",
      document,
      digest: digestOf(document),
      diff,
    });
  }

  async #startFromSnapshot(): Promise<void> {
    const { log } = this.#options;
    const saved = await this.#snapshot.load();
    if (saved !== undefined && (await this.#adopt(saved, "snapshot"))) {
      log.warn("started with the rules of the local snapshot", {
        version: saved.version,
        why: this.status().lastError,
      });
    } else if (this.#databaseError !== undefined) {
      log.error("no rules could be read yet: nothing is limited until they can", { why: this.#databaseError });
    }
  }

  /** Looks for a newer version. The look begins after the call, so whatever was committed before it is seen. */
  refresh(): Promise<void> {
    this.#queuedRefresh ??= this.#inTurn(async () => {
      this.#queuedRefresh = undefined;
      if (!this.#closed) await this.#look();
    });
    return this.#queuedRefresh;
  }

  async #look(): Promise<void> {
    let head: VersionMark | undefined;
    try {
      head = await this.repository.head();
      this.#noteDatabase(undefined);
    } catch (error) {
      this.#noteDatabase(error);
      await this.#lookIntoCache();
      return;
    }
    try {
      if (head !== undefined) await this.#follow(head);
      await this.#keepCacheWarm();
    } catch (error) {
      this.#options.log.warn("the rules could not be refreshed", { error: messageOf(error) });
    }
  }

  /** The database is up: its newest version is the truth, even where it is older than ours (a restored backup). */
  async #follow(head: VersionMark): Promise<void> {
    if (this.#inForce.holds(head)) {
      // The database says so itself, wherever the text once came from.
      if (this.#inForce.source === "snapshot") this.#inForce.source = "database";
      this.#rejected = undefined;
      return;
    }
    if (this.#rejected?.mark.digest === head.digest && this.#rejected.mark.version === head.version) return;
    const cached = await this.#cached((mark) => mark.version === head.version && mark.digest === head.digest);
    // Neither text needs trust: a cache that was tampered with does not have the digest that the database tells.
    if (cached !== undefined && digestOf(cached.document) === head.digest) {
      await this.#adopt(cached, "cache");
      return;
    }
    const stored = await this.repository.read(head.version);
    if (stored === undefined || !(await this.#adopt(stored, "database"))) return;
    await this.#tellCache(stored, { announce: false });
  }

  /** The database is down: a newer version in the cache is better than ours. */
  async #lookIntoCache(): Promise<void> {
    const isNewer = (mark: VersionMark) => !this.#inForce.source || mark.version > this.current.version;
    const isKnownBad = (mark: VersionMark) => this.#rejected?.mark.digest === mark.digest;
    const cached = await this.#cached((mark) => isNewer(mark) && !isKnownBad(mark));
    if (cached === undefined) {
      await this.#keepCacheWarm().catch(() => undefined);
      return;
    }
    if (digestOf(cached.document) !== cached.digest) {
      this.#reject(cached, "the cached rules are not what was written");
      return;
    }
    await this.#adopt(cached, "cache");
  }

  async #cached(wanted: (mark: VersionMark) => boolean): Promise<Document | undefined> {
    if (this.#cache === undefined || !this.#cache.isUp) return undefined;
    try {
      const mark = await this.#cache.mark();
      return mark !== undefined && wanted(mark) ? await this.#cache.read() : undefined;
    } catch {
      return undefined;
    }
  }

  /** Validates and swaps. False, with the reason kept for `status`, if the text is no valid document: the book stays. */
  async #adopt(found: Document, source: BookSource): Promise<boolean> {
    const pace = new Pace();
    let rules: Rule[];
    try {
      rules = await parseDocument(await readDocument(found.document, pace), pace);
    } catch (error) {
      this.#reject(found, messageOf(error));
      return false;
    }
    await this.#swap({ rules, version: found.version }, found, source);
    return true;
  }

  async #swap(book: Book, { version, digest, createdAtMs, document }: Document, source: BookSource): Promise<void> {
    const { log } = this.#options;
    this.#rejected = undefined;
    await this.#inForce.swap(book, { digest, source });
    // Two machines' clocks may differ; less than nothing is nothing.
    this.#propagationMs = Math.max(0, Date.now() - createdAtMs);
    log.info("rules in force", { version, rules: book.rules.length, source });
    if (source === "snapshot") return;
    this.#snapshot
      .save({ version, digest, createdAtMs, document })
      .catch((error) => log.warn("the local snapshot could not be written", { error: messageOf(error) }));
  }

  #reject(mark: VersionMark, why: string): void {
    this.#rejected = { mark, why: `version ${mark.version} is not usable: ${why}` };
    this.#options.log.error("rules were refused, the old ones stay in force", { version: mark.version, why });
  }

  async apply(change: Change): Promise<Applied> {
    for (let attempt = 0; attempt < APPLY_TRIES; attempt++) {
      const applied = await this.#tryToApply(change);
      if (applied !== undefined) return applied;
    }
    throw new ConfigurationError("too-busy", `the rules changed ${APPLY_TRIES} times while this change was made`);
  }

  /** Undefined if somebody else committed in between. */
  async #tryToApply(change: Change): Promise<Applied | undefined> {
    const pace = new Pace();
    const head = await this.repository.head();
    const version = head?.version ?? 0;
    const old = head === undefined ? [] : await this.#rulesOf(head, pace);
    if (change.ifMatch !== undefined && change.ifMatch !== version) {
      throw await this.#mismatch({ seen: change.ifMatch, version, rules: old });
    }
    const rules = await parseDocument(change.edit(old, version), pace);
    const diff = await diffRules(old, rules, pace);
    if (change.dryRun || isEmpty(diff)) return { version, changed: false, diff };
    const document = await writeDocument(rules, pace);
    const digest = digestOf(document);
    const { author, message = "", kind } = change;
    const mark = await this.repository.commit({ base: version, author, message, kind, document, digest, diff });
    if (mark === undefined) return undefined;
    this.#noteDatabase(undefined);
    await this.#inTurn(async () => {
      if (this.current.version < mark.version) {
        await this.#swap({ rules, version: mark.version }, { ...mark, document }, "database");
      } else if (!this.#inForce.holds(mark)) {
        // Somebody has gone further already, or the database went back by a restore: it knows.
        await this.#look();
      }
    });
    await this.#tellCache({ ...mark, document }, { announce: true });
    return { version: mark.version, changed: true, diff };
  }

  async #rulesOf(mark: VersionMark, pace: Pace): Promise<readonly Rule[]> {
    if (this.#inForce.holds(mark)) return this.current.rules;
    const stored = await this.repository.read(mark.version);
    if (stored === undefined) throw unknownVersion(mark.version);
    try {
      return await parseDocument(await readDocument(stored.document, pace), pace);
    } catch {
      // Somebody wrote into the database by hand. The change is made to the last good rules: that is how it is mended.
      return this.current.rules;
    }
  }

  async #mismatch(seen: { seen: number; version: number; rules: readonly Rule[] }): Promise<ConfigurationError> {
    const pace = new Pace();
    const old = await this.repository.read(seen.seen);
    const rules = old && (await parseDocument(await readDocument(old.document, pace), pace));
    const diff = rules && (await diffRules(rules, seen.rules, pace));
    return new ConfigurationError(
      "version-mismatch",
      `If-Match: expected the current version ${seen.version}, got ${seen.seen}`,
      { details: { currentVersion: seen.version, ...(diff !== undefined && { diff }) } },
    );
  }

  async #tellCache(document: Document, { announce }: { announce: boolean }): Promise<void> {
    if (this.#cache === undefined || !this.#cache.isUp) return;
    try {
      const held = await this.#cache.mark();
      // Newer than the newest of the database: left over from before a restore.
      await this.#cache.write(document, !announce && held !== undefined && held.version > document.version);
      if (announce) await this.#cache.announce(document.version);
    } catch (error) {
      this.#options.log.warn("the rule cache could not be written", { error: messageOf(error) });
    }
  }

  /** While an instance runs, its rules stay in the cache: the time to live is for a fleet that is gone. */
  async #keepCacheWarm(): Promise<void> {
    const cache = this.#cache;
    if (cache === undefined || !cache.isUp || this.#inForce.source === undefined) return;
    const nowMs = performance.now();
    if (nowMs < this.#prolongAtMs) return;
    this.#prolongAtMs = nowMs + (this.#options.cacheTtlMs ?? CACHE_TTL_MS) / 4;
    const mark = await cache.mark();
    if (mark !== undefined && this.#inForce.holds(mark)) await cache.prolong();
    else if (this.#databaseError === undefined) {
      const stored = await this.repository.read(this.current.version);
      if (stored !== undefined && this.#inForce.holds(stored)) await this.#tellCache(stored, { announce: false });
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#queue.then(work);
    this.#queue = mine.catch(() => undefined);
    return mine;
  }

  #noteDatabase(error: unknown): void {
    const { log } = this.#options;
    const why = error === undefined ? undefined : messageOf(error);
    if (why !== undefined && this.#databaseError === undefined) log.warn("the database cannot be reached", { why });
    if (why === undefined && this.#databaseError !== undefined) log.info("the database can be reached again");
    this.#databaseError = why;
  }

  #pollLater(): void {
    if (this.#closed) return;
    this.#poll = setTimeout(
      () => void this.refresh().finally(() => this.#pollLater()),
      this.#options.pollMs ?? POLL_MS,
    );
    this.#poll.unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#poll);
    this.#cache?.close();
    await this.#queue;
    await this.#snapshot.settled();
    await this.repository.close();
  }
}

export function unknownVersion(version: number): ConfigurationError {
  return new ConfigurationError("unknown-version", `there is no version ${version}`);
}

function withoutPassword(database: string): string {
  return database.replace(/\/\/[^@/]*@/, "//");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
