/**
 * The configuration layer: which rules are in force on this instance, and how they are changed.
 *
 * The way of a change, and what a failure at each step leads to:
 *   1. the new document is validated           `invalid-rules`: nothing changed
 *   2. the database commits it as a version    `version-mismatch`, `database-unavailable`: nothing changed
 *   3. this instance swaps its book            from here on the change stands, also after a crash
 *   4. the Redis cache gets it, with a TTL     a failure is logged; the others read the database
 *   5. Redis announces it                      a failure is logged; the others find it by their version poll
 * and on every other instance: announcement or poll -> cache, else database -> validate -> swap -> local snapshot.
 *
 * Database gone: the cache serves. Redis gone: the database. Both: the book in force; at a start, the local snapshot.
 */

import { join } from "node:path";
import type { Rule } from "sluice";
import type { TlsOptions } from "sluice/redis";
import type { Log } from "../log.js";
import type { Book, BookListener, BookSource } from "./book-in-force.js";
import { DatabaseConfiguration } from "./database-configuration.js";
import { FileConfiguration } from "./file-configuration.js";
import type { ChangeKind, RuleRepository } from "./repository/rule-repository.js";
import type { RuleDiff } from "./rule-diff.js";

export type ConfigurationLog = Pick<Log, "info" | "warn" | "error">;

export interface ConfigurationOptions {
  /** `sqlite:PATH` or `postgres://…`. Default: SQLite in the data folder. */
  readonly database?: string | undefined;
  /** Where rules are cached and changes announced: the store's Redis, if it is one. */
  readonly redisUrl?: string | undefined;
  readonly redisTls?: TlsOptions;
  readonly redisPrefix?: string | undefined;
  /** Rules from a file instead, read-only and read again when it changes; no database is opened. */
  readonly rulesFile?: string | undefined;
  /** For the snapshot and the default database. */
  readonly dataFolder: string;
  /** The first version of an empty database. */
  readonly starterRules?: readonly Rule[] | undefined;
  /** Throws for rules that are valid, but need a global store, which this service does not have. */
  readonly accept?: ((rules: readonly Rule[]) => void) | undefined;
  /** How often to poll for a version whose announcement was lost. Default 500. */
  readonly pollMs?: number | undefined;
  /** How long the cache outlives the last instance. Default one hour. */
  readonly cacheTtlMs?: number | undefined;
  /** Called when Redis can be reached, also again: it may have lost its scripts (`limiter.ready()` loads them). */
  readonly onRedisReady?: (() => void) | undefined;
  readonly log: ConfigurationLog;
}

export interface ConfigurationStatus {
  readonly version: number;
  /** False while no rules could be read from anywhere: the instance is not ready. */
  readonly loaded: boolean;
  readonly source: BookSource;
  readonly database: "up" | "down" | "none";
  readonly cache: "up" | "down" | "none";
  /** The present error; absent if there is none. */
  readonly lastError?: string;
  /** From the commit of the version in force, by its writer's clock, to its swap here. */
  readonly propagationMs?: number;
}

export interface Change {
  readonly author: string;
  readonly message?: string | undefined;
  readonly kind: ChangeKind;
  /** The version that the caller has seen; another one in force refuses the change. Absent: the newest, whatever it is. */
  readonly ifMatch?: number | undefined;
  /** Only tell what would change. */
  readonly dryRun?: boolean | undefined;
  /** The new document, made from the newest rules, or a `PreparedDocument`. May be called again if another change was faster. */
  readonly edit: (rules: readonly Rule[], version: number) => unknown;
}

export interface Applied {
  /** In force now; for a dry run or a change that changes nothing, the version that was in force already. */
  readonly version: number;
  readonly changed: boolean;
  readonly diff: RuleDiff;
}

export interface Configuration {
  /** Always a valid book; empty, as version 0, until one was loaded. */
  readonly current: Book;
  onChange(listener: BookListener): () => void;
  status(): ConfigurationStatus;
  /** Undefined where the rules come from a file. */
  readonly repository: RuleRepository | undefined;
  /** Validates, commits, swaps, caches and announces. Rejects with `invalid-rules` or a ServiceError; then nothing changed. */
  apply(change: Change): Promise<Applied>;
  close(): Promise<void>;
}

/**
 * Resolves when rules are in force, or when it is known that none can be read now; then it goes on trying.
 * Rejects for a wrong setting, and for a rules file with mistakes that no snapshot stands in for.
 */
export async function startConfiguration(options: ConfigurationOptions): Promise<Configuration> {
  if (options.rulesFile !== undefined) return await FileConfiguration.start(options, options.rulesFile);
  const database = options.database ?? `sqlite:${join(options.dataFolder, "sluice.db")}`;
  return await DatabaseConfiguration.start(options, database);
}
