/**
 * The contract of the repository: every version of the rules with its author and reason, what administrators did, and their
 * tokens. Two databases, SQLite and PostgreSQL, one meaning; `test/configuration/repository.test.ts` runs on both.
 *
 * An answered write is on disk. A database that cannot be reached rejects with `database-unavailable`, and the next
 * call tries again. Documents are text here: nothing in this room reads them.
 */
import type { RuleDiff } from "../rule-diff.js";
import type { AlertRepository } from "./alert-repository.js";

/** The identity of a version, without its document. */
export interface VersionMark {
  readonly version: number;
  readonly digest: string;
  readonly createdAtMs: number;
}

export type ChangeKind = "starter" | "rule" | "document" | "rollback" | "promote";

export interface VersionSummary extends VersionMark {
  readonly author: string;
  readonly message: string;
  readonly kind: ChangeKind;
  readonly diff: RuleDiff;
}

export interface StoredVersion extends VersionSummary {
  readonly document: string;
}

export interface NewVersion {
  /** The version that the change was made from; 0 for the first. */
  readonly base: number;
  readonly author: string;
  readonly message: string;
  readonly kind: ChangeKind;
  readonly document: string;
  readonly digest: string;
  readonly diff: RuleDiff;
}

export interface AuditEntry {
  readonly id: number;
  readonly atMs: number;
  readonly actor: string;
  /** `rules.changed`, `key.reset`, `token.created`, `token.deleted`, `authentication.failed`, `limit.moved`, `alerts.changed`, … */
  readonly action: string;
  readonly target: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export type NewAuditEntry = Omit<AuditEntry, "id" | "atMs">;

export type Role = "viewer" | "editor" | "admin";

export interface StoredToken {
  readonly name: string;
  readonly role: Role;
  /** SHA-256 of the token, in hex. The token itself is never stored. */
  readonly hash: string;
  readonly createdAtMs: number;
  readonly createdBy: string;
  /** Absent: it does not expire. */
  readonly expiresAtMs?: number;
  /** To the minute; absent: never used. */
  readonly lastUsedAtMs?: number;
}

/** A session of the dashboard, as far as it was noted: signing in works while the database is down. */
export interface NotedSession {
  readonly id: string;
  /** Its token's. */
  readonly name: string;
  readonly createdAtMs: number;
  readonly endsAtMs: number;
  /** The browser, in its own words. */
  readonly agent: string;
}

export interface AuditFilter {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  /** Entries about this rule. */
  readonly rule?: string | undefined;
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

/** A session of the dashboard that was signed out before its time. */
export interface EndedSession {
  /** Undefined: every session of the token that would end by `endsAtMs`. */
  readonly id: string | undefined;
  readonly name: string;
  readonly endsAtMs: number;
}

/** Newest first; `before`: a version or an audit id, exclusive. */
export interface Page {
  readonly before?: number | undefined;
  readonly limit: number;
}

export interface RuleRepository {
  /** The newest version; undefined in an empty database. */
  head(): Promise<VersionMark | undefined>;
  read(version: number): Promise<StoredVersion | undefined>;
  versions(page: Page): Promise<VersionSummary[]>;
  /** One transaction: the version and its audit entry. Undefined, and nothing written, if `base` is not the newest any more. */
  commit(change: NewVersion): Promise<VersionMark | undefined>;

  audit(page: Page & AuditFilter): Promise<AuditEntry[]>;
  record(entry: NewAuditEntry): Promise<void>;

  tokens(): Promise<StoredToken[]>;
  /** False if the name is taken; names that differ only by case are the same. */
  addToken(token: Omit<StoredToken, "createdAtMs" | "lastUsedAtMs">): Promise<boolean>;
  noteTokenUse(name: string, atMs: number): Promise<void>;
  /** False if there is none of that name. */
  removeToken(name: string, by: string): Promise<boolean>;

  /** Those that are not over, the newest first, at most 500. */
  sessions(): Promise<NotedSession[]>;
  noteSession(session: NotedSession): Promise<void>;
  /** Those that are not over by themselves. */
  endedSessions(): Promise<EndedSession[]>;
  /** A token that ends many sessions ends all of its sessions: what is kept stays bounded. */
  endSession(session: EndedSession): Promise<void>;

  readonly alerts: AlertRepository;

  close(): Promise<void>;
}
