/**
 * The rule cache as the configuration uses it: it never fails (what it cannot do is logged, or is as if nothing were cached), and
 * it stays filled while an instance runs, so that its time to live is for a fleet that is gone.
 */
import type { TlsOptions } from "sluice/redis";
import type { ConfigurationLog } from "./configuration.js";
import type { VersionMark } from "./repository/rule-repository.js";
import { type CachedDocument, RuleCache } from "./rule-cache.js";

interface WarmCacheOptions {
  readonly url: string;
  readonly tls?: TlsOptions;
  readonly prefix?: string | undefined;
  readonly ttlMs: number;
  readonly log: ConfigurationLog;
  readonly onAnnounced: (version: number) => void;
  readonly onReady: () => void;
}

export class WarmCache {
  readonly #cache: RuleCache;
  readonly #ttlMs: number;
  readonly #log: ConfigurationLog;
  #lookAtMs = 0;

  constructor(options: WarmCacheOptions) {
    this.#ttlMs = options.ttlMs;
    this.#log = options.log;
    this.#cache = new RuleCache({
      ...options,
      onReady: () => {
        // Redis may have come back empty.
        this.#lookAtMs = 0;
        options.onReady();
      },
    });
  }

  get isUp(): boolean {
    return this.#cache.isUp;
  }

  settled(patienceMs: number): Promise<void> {
    return this.#cache.settled(patienceMs);
  }

  /** The cached rules, if they can be read and are the ones wanted. The document is fetched only then. */
  async find(wanted: (mark: VersionMark) => boolean): Promise<CachedDocument | undefined> {
    if (!this.isUp) return undefined;
    try {
      const mark = await this.#cache.mark();
      return mark !== undefined && wanted(mark) ? await this.#cache.read() : undefined;
    } catch {
      return undefined;
    }
  }

  /** A change was committed: cached first, then announced, so that every listener finds it. */
  async announce(document: CachedDocument): Promise<void> {
    await this.#unlessDown(async () => {
      await this.#cache.write(document);
      await this.#cache.announce(document.version);
    });
  }

  /** Caches what the database holds, also over a newer version: that one is left over from before a restore. */
  async fill(document: CachedDocument): Promise<void> {
    await this.#unlessDown(() => this.#cache.write(document, true));
  }

  /** Now and then: starts the time to live anew or, where other rules or none are cached, caches these. */
  async keep(holds: (mark: VersionMark) => boolean, read: () => Promise<CachedDocument | undefined>): Promise<void> {
    const nowMs = performance.now();
    if (nowMs < this.#lookAtMs) return;
    await this.#unlessDown(async () => {
      this.#lookAtMs = nowMs + this.#ttlMs / 4;
      const mark = await this.#cache.mark();
      if (mark !== undefined && holds(mark)) {
        await this.#cache.prolong();
        return;
      }
      const document = await read();
      if (document !== undefined && holds(document)) await this.#cache.write(document, true);
    });
  }

  close(): void {
    this.#cache.close();
  }

  async #unlessDown(work: () => Promise<unknown>): Promise<void> {
    if (!this.isUp) return;
    try {
      await work();
    } catch (error) {
      this.#log.warn("the rule cache could not be written", { error: String(error) });
    }
  }
}
