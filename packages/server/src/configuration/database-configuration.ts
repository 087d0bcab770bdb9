/**
 * Rules from the database, by way of the cache. Everything that may change the book in force goes through one queue, so that
 * an older version never follows a newer one.
 */
import type { Rule } from "sluice";
import { ServiceError } from "../errors.js";
import { type Book, BookInForce, type BookListener, type BookSource } from "./book-in-force.js";
import { changeRules } from "./change-rules.js";
import type { Applied, Change, Configuration, ConfigurationOptions, ConfigurationStatus } from "./configuration.js";
import { digestOf } from "./document-text.js";
import { InTurn } from "./in-turn.js";
import { openRepository } from "./repository/open-repository.js";
import type { RuleRepository, VersionMark } from "./repository/rule-repository.js";
import { readStoredRules } from "./rule-worker.js";
import { Snapshot } from "./snapshot.js";
import type { WarmCache } from "./warm-cache.js";

const POLL_MS = 500;
const CACHE_TTL_MS = 3_600_000;
/** How long the first start waits for Redis before it goes on without. */
const REDIS_PATIENCE_MS = 1_000;
const STARTER_AUTHOR = "sluice";

type Document = VersionMark & { readonly document: string };

export class DatabaseConfiguration implements Configuration {
  readonly repository: RuleRepository;
  readonly #options: ConfigurationOptions;
  readonly #inForce: BookInForce;
  readonly #snapshot: Snapshot;
  #cache: WarmCache | undefined;
  readonly #books = new InTurn();
  /** Changes made through this instance do not overtake each other: each would make all others start over. */
  readonly #changes = new InTurn();
  #queuedRefresh: Promise<void> | undefined;
  #poll: NodeJS.Timeout | undefined;
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
  }

  get current(): Book {
    return this.#inForce.book;
  }

  onChange(listener: BookListener): () => void {
    return this.#inForce.onChange(listener);
  }

  status(): ConfigurationStatus {
    const lastError = this.#databaseError ?? this.#rejected?.why ?? this.#inForce.refusal;
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

  async #openCache(): Promise<void> {
    const options = this.#options;
    if (options.redisUrl === undefined) return;
    // Loaded only here, with the client of Redis: a fifth of what a start reads.
    const { WarmCache } = await import("./warm-cache.js");
    this.#cache = new WarmCache({
      url: options.redisUrl,
      ...(options.redisTls && { tls: options.redisTls }),
      prefix: options.redisPrefix,
      ttlMs: options.cacheTtlMs ?? CACHE_TTL_MS,
      log: options.log,
      onAnnounced: (version) => {
        if (version !== this.current.version) void this.refresh();
      },
      onReady: () => {
        options.onRedisReady?.();
        void this.refresh();
      },
    });
  }

  async #start(): Promise<void> {
    await this.#openCache();
    await this.#cache?.settled(REDIS_PATIENCE_MS);
    await this.#addStarterRules().catch((error) => this.#noteDatabase(error));
    await this.refresh();
    if (this.#inForce.source === undefined) await this.#books.run(() => this.#startFromSnapshot());
    // From now on: what the start took is not a propagation.
    this.#propagationMs = undefined;
    this.#pollLater();
  }

  async #addStarterRules(): Promise<void> {
    const { starterRules } = this.#options;
    if (starterRules === undefined || (await this.repository.head()) !== undefined) return;
    // Of several instances that start together one wins; the others find its version, and that nothing differs.
    await changeRules(
      { author: STARTER_AUTHOR, message: "starter rules", kind: "starter", ifMatch: 0, edit: () => starterRules },
      { repository: this.repository, rulesOf: async () => starterRules },
    ).catch((error) => {
      if (!(error instanceof ServiceError && error.code === "version-mismatch")) throw error;
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
    this.#queuedRefresh ??= this.#books.run(async () => {
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
    const cached = await this.#cache?.find((mark) => mark.version === head.version && mark.digest === head.digest);
    // Neither text needs trust: a cache that was tampered with does not have the digest that the database tells.
    if (cached !== undefined && digestOf(cached.document) === head.digest) {
      await this.#adopt(cached, "cache");
      return;
    }
    const stored = await this.repository.read(head.version);
    if (stored === undefined || !(await this.#adopt(stored, "database"))) return;
    await this.#cache?.fill(stored);
  }

  /** The database is down: a newer version in the cache is better than ours. */
  async #lookIntoCache(): Promise<void> {
    const isNewer = (mark: VersionMark) => !this.#inForce.source || mark.version > this.current.version;
    const isKnownBad = (mark: VersionMark) => this.#rejected?.mark.digest === mark.digest;
    const cached = await this.#cache?.find((mark) => isNewer(mark) && !isKnownBad(mark));
    if (cached === undefined) {
      await this.#keepCacheWarm();
      return;
    }
    if (digestOf(cached.document) !== cached.digest) {
      this.#reject(cached, "the cached rules are not what was written");
      return;
    }
    await this.#adopt(cached, "cache");
  }

  /** Validates and swaps. False, with the reason kept for `status`, if the text is no valid document: the book stays. */
  async #adopt(found: Document, source: BookSource): Promise<boolean> {
    let rules: readonly Rule[];
    try {
      rules = await readStoredRules(found.document);
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

  apply(change: Change): Promise<Applied> {
    return change.dryRun === true ? this.#apply(change) : this.#changes.run(() => this.#apply(change));
  }

  async #apply(change: Change): Promise<Applied> {
    const { applied, committed } = await changeRules(change, {
      repository: this.repository,
      rulesOf: (mark) => this.#rulesOf(mark),
      accept: this.#options.accept,
    });
    if (committed === undefined) return applied;
    this.#noteDatabase(undefined);
    await this.#books.run(async () => {
      if (this.current.version < committed.version) {
        await this.#swap({ rules: committed.rules, version: committed.version }, committed, "database");
      } else if (!this.#inForce.holds(committed)) {
        // Somebody has gone further already, or the database went back by a restore: it knows.
        await this.#look();
      }
    });
    await this.#cache?.announce(committed);
    return applied;
  }

  async #rulesOf(mark: VersionMark): Promise<readonly Rule[]> {
    if (this.#inForce.holds(mark)) return this.current.rules;
    const stored = await this.repository.read(mark.version);
    try {
      return stored === undefined ? [] : await readStoredRules(stored.document);
    } catch {
      // Somebody wrote into the database by hand. The change is made to the last good rules: that is how it is mended.
      return this.current.rules;
    }
  }

  async #keepCacheWarm(): Promise<void> {
    if (this.#inForce.source === undefined) return;
    await this.#cache?.keep(
      (mark) => this.#inForce.holds(mark),
      async () => (this.#databaseError === undefined ? await this.repository.read(this.current.version) : undefined),
    );
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
    // First the changes: each ends with a turn among the books.
    await this.#changes.settled();
    await this.#books.settled();
    await this.#snapshot.settled();
    await this.repository.close();
  }
}

function withoutPassword(database: string): string {
  return database.replace(/\/\/[^@/]*@/, "//");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
