/**
 * The repository in SQL, the same statements for both databases. Only this folder touches SQL.
 * Nothing is opened before it is needed, so that a database that is down at the start is found when it comes back.
 */
import { ServiceError } from "../../errors.js";
import type { RuleDiff } from "../rule-diff.js";
import type { AlertRepository } from "./alert-repository.js";
import { migrate } from "./migrations.js";
import type {
  AuditEntry,
  AuditFilter,
  ChangeKind,
  EndedSession,
  NewAuditEntry,
  NewVersion,
  NotedSession,
  Page,
  Role,
  RuleRepository,
  StoredToken,
  StoredVersion,
  VersionMark,
  VersionSummary,
} from "./rule-repository.js";
import { SqlAlertRepository } from "./sql-alert-repository.js";
import type { Query, SqlDriver, SqlRow, SqlValue } from "./sql-driver.js";

const MARK = "version, digest, created_at_ms";
/** Ended sessions of one token that are kept one by one. */
const MOST_ENDED_SESSIONS = 100;
/** Of a change, in its audit entry. */
const MOST_RULES_NAMED = 50;
const SUMMARY = `${MARK}, author, message, kind, diff`;

export class SqlRepository implements RuleRepository {
  readonly alerts: AlertRepository;
  readonly #driver: SqlDriver;
  #migrated: Promise<unknown> | undefined;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
    this.alerts = new SqlAlertRepository({
      query: (statement, parameters) => this.#query(statement, parameters),
      exclusively: (work) => this.#exclusively(work),
      audit: insertAudit,
    });
  }

  async head(): Promise<VersionMark | undefined> {
    const [row] = await this.#query(`SELECT ${MARK} FROM sluice_versions ORDER BY version DESC LIMIT 1`);
    return row && markOf(row);
  }

  async read(version: number): Promise<StoredVersion | undefined> {
    const [row] = await this.#query(`SELECT ${SUMMARY}, document FROM sluice_versions WHERE version = $1`, [version]);
    return row && { ...summaryOf(row), document: String(row.document) };
  }

  async versions({ before, limit }: Page): Promise<VersionSummary[]> {
    const rows = await this.#query(
      `SELECT ${SUMMARY} FROM sluice_versions WHERE version < $1 ORDER BY version DESC LIMIT $2`,
      [before ?? Number.MAX_SAFE_INTEGER, limit],
    );
    return rows.map(summaryOf);
  }

  commit(change: NewVersion): Promise<VersionMark | undefined> {
    const { base, author, message, kind, document, digest, diff } = change;
    return this.#exclusively(async (query) => {
      const [newest] = await query("SELECT max(version) AS version FROM sluice_versions");
      if (Number(newest!.version ?? 0) !== base) return undefined;
      const version = base + 1;
      const createdAtMs = Date.now();
      await query(
        `INSERT INTO sluice_versions (${SUMMARY}, document) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING version`,
        [version, digest, createdAtMs, author, message, kind, JSON.stringify(diff), document],
      );
      const { added, removed, changed } = diff;
      const rules = diff.changes.slice(0, MOST_RULES_NAMED).map(({ rule }) => rule);
      const details = { version, message, kind, added, removed, changed, rules };
      await insertAudit(query, { actor: author, action: "rules.changed", target: `version ${version}`, details });
      return { version, digest, createdAtMs };
    });
  }

  async audit({ before, limit, actor, action, rule, fromMs, toMs }: Page & AuditFilter): Promise<AuditEntry[]> {
    const values: SqlValue[] = [before ?? Number.MAX_SAFE_INTEGER];
    const bounds = ["id < $1"];
    const bound = (given: SqlValue | undefined, spell: (at: string) => string): void => {
      if (given !== undefined) bounds.push(spell(`$${values.push(given)}`));
    };
    bound(actor, (at) => `actor = ${at}`);
    bound(action, (at) => `action = ${at}`);
    bound(rule, (at) => `(target = ${at} OR details LIKE $${values.push(likeQuoted(rule!))} ESCAPE '!')`);
    bound(fromMs, (at) => `at_ms >= ${at}`);
    bound(toMs, (at) => `at_ms < ${at}`);
    const rows = await this.#query(
      `SELECT id, at_ms, actor, action, target, details FROM sluice_audit
       WHERE ${bounds.join(" AND ")} ORDER BY id DESC LIMIT $${values.push(limit)}`,
      values,
    );
    return rows.map((row) => ({
      id: Number(row.id),
      atMs: Number(row.at_ms),
      actor: String(row.actor),
      action: String(row.action),
      target: String(row.target),
      details: JSON.parse(String(row.details)) as Record<string, unknown>,
    }));
  }

  record(entry: NewAuditEntry): Promise<void> {
    return this.#exclusively((query) => insertAudit(query, entry));
  }

  async tokens(): Promise<StoredToken[]> {
    const rows = await this.#query(
      `SELECT name, role, hash, created_at_ms, created_by, expires_at_ms, last_used_at_ms
       FROM sluice_tokens ORDER BY name`,
    );
    return rows.map((row) => ({
      name: String(row.name),
      role: String(row.role) as Role,
      hash: String(row.hash),
      createdAtMs: Number(row.created_at_ms),
      createdBy: String(row.created_by),
      ...(row.expires_at_ms !== null && { expiresAtMs: Number(row.expires_at_ms) }),
      ...(row.last_used_at_ms !== null && { lastUsedAtMs: Number(row.last_used_at_ms) }),
    }));
  }

  addToken(token: Omit<StoredToken, "createdAtMs" | "lastUsedAtMs">): Promise<boolean> {
    const { name, role, hash, createdBy, expiresAtMs } = token;
    return this.#exclusively(async (query) => {
      const added = await query(
        `INSERT INTO sluice_tokens (name, role, hash, created_at_ms, created_by, expires_at_ms)
         SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS BIGINT), CAST($5 AS TEXT), CAST($6 AS BIGINT)
         WHERE NOT EXISTS (SELECT 1 FROM sluice_tokens WHERE lower(name) = lower($1)) RETURNING name`,
        [name, role, hash, Date.now(), createdBy, expiresAtMs ?? null],
      );
      if (added.length === 0) return false;
      const expires = expiresAtMs === undefined ? {} : { expires: new Date(expiresAtMs).toISOString() };
      const details = { role, ...expires };
      await insertAudit(query, { actor: createdBy, action: "token.created", target: name, details });
      return true;
    });
  }

  async noteTokenUse(name: string, atMs: number): Promise<void> {
    await this.#exclusively((query) =>
      query(
        `UPDATE sluice_tokens SET last_used_at_ms = $2
         WHERE name = $1 AND coalesce(last_used_at_ms, 0) < $2 RETURNING name`,
        [name, atMs],
      ),
    );
  }

  async sessions(): Promise<NotedSession[]> {
    const rows = await this.#query(
      `SELECT id, name, created_at_ms, ends_at_ms, agent FROM sluice_sessions
       WHERE ends_at_ms > $1 ORDER BY created_at_ms DESC LIMIT 500`,
      [Date.now()],
    );
    return rows.map((row) => ({
      id: String(row.id),
      name: String(row.name),
      createdAtMs: Number(row.created_at_ms),
      endsAtMs: Number(row.ends_at_ms),
      agent: String(row.agent),
    }));
  }

  async noteSession({ id, name, createdAtMs, endsAtMs, agent }: NotedSession): Promise<void> {
    await this.#exclusively(async (query) => {
      await query("DELETE FROM sluice_sessions WHERE ends_at_ms <= $1 RETURNING id", [Date.now()]);
      await query(
        "INSERT INTO sluice_sessions (id, name, created_at_ms, ends_at_ms, agent) VALUES ($1, $2, $3, $4, $5) RETURNING id",
        [id, name, createdAtMs, endsAtMs, agent],
      );
    });
  }

  removeToken(name: string, by: string): Promise<boolean> {
    return this.#exclusively(async (query) => {
      const removed = await query("DELETE FROM sluice_tokens WHERE name = $1 RETURNING name", [name]);
      if (removed.length === 0) return false;
      await insertAudit(query, { actor: by, action: "token.deleted", target: name, details: {} });
      return true;
    });
  }

  async endedSessions(): Promise<EndedSession[]> {
    const rows = await this.#query("SELECT id, name, ends_at_ms FROM sluice_ended_sessions WHERE ends_at_ms > $1", [
      Date.now(),
    ]);
    return rows.map((row) => {
      const name = String(row.name);
      return { name, id: row.id === allOf(name) ? undefined : String(row.id), endsAtMs: Number(row.ends_at_ms) };
    });
  }

  endSession({ id, name, endsAtMs }: EndedSession): Promise<void> {
    return this.#exclusively(async (query) => {
      await query("DELETE FROM sluice_ended_sessions WHERE ends_at_ms <= $1 RETURNING id", [Date.now()]);
      await insertEnded(query, { id: id ?? allOf(name), name, endsAtMs });
      const kept = await query("SELECT ends_at_ms FROM sluice_ended_sessions WHERE name = $1", [name]);
      if (kept.length <= MOST_ENDED_SESSIONS) return;
      const latest = Math.max(...kept.map((row) => Number(row.ends_at_ms)));
      await query("DELETE FROM sluice_ended_sessions WHERE name = $1 RETURNING id", [name]);
      await insertEnded(query, { id: allOf(name), name, endsAtMs: latest });
    });
  }

  async close(): Promise<void> {
    await this.#driver.close();
  }

  #query(statement: string, parameters: readonly SqlValue[] = []): Promise<SqlRow[]> {
    return this.#reachable(() => this.#driver.query(statement, parameters));
  }

  #exclusively<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#reachable(() => this.#driver.exclusively(work));
  }

  async #reachable<T>(ask: () => Promise<T>): Promise<T> {
    try {
      this.#migrated ??= migrate(this.#driver);
      await this.#migrated.catch((error) => {
        this.#migrated = undefined;
        throw error;
      });
      return await ask();
    } catch (error) {
      const why = error instanceof Error ? error.message || error.name : String(error);
      throw new ServiceError("database-unavailable", `${this.#driver.name}: ${why}`, { cause: error });
    }
  }
}

/** A pattern for an id in quotes, each of whose characters stands for itself. */
function likeQuoted(id: string): string {
  return `%"${id.replace(/[!%_]/g, "!$&")}"%`;
}

/** The row that stands for every session of a token; no session's own id has a star. */
function allOf(name: string): string {
  return `*${name}`;
}

async function insertEnded(query: Query, ended: { id: string; name: string; endsAtMs: number }): Promise<void> {
  await query(
    `INSERT INTO sluice_ended_sessions (id, name, ends_at_ms) VALUES ($1, $2, $3)
     ON CONFLICT (id) DO UPDATE SET ends_at_ms = excluded.ends_at_ms RETURNING id`,
    [ended.id, ended.name, ended.endsAtMs],
  );
}

/** Numbered by hand: writers come one after the other, and neither database's own counter is spelled as the other's. */
async function insertAudit(query: Query, { actor, action, target, details }: NewAuditEntry): Promise<void> {
  await query(
    `INSERT INTO sluice_audit (id, at_ms, actor, action, target, details)
     SELECT coalesce(max(id), 0) + 1, CAST($1 AS BIGINT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT)
     FROM sluice_audit RETURNING id`,
    [Date.now(), actor, action, target, JSON.stringify(details)],
  );
}

function markOf(row: SqlRow): VersionMark {
  // PostgreSQL's driver gives a BIGINT as text.
  return { version: Number(row.version), digest: String(row.digest), createdAtMs: Number(row.created_at_ms) };
}

function summaryOf(row: SqlRow): VersionSummary {
  return {
    ...markOf(row),
    author: String(row.author),
    message: String(row.message),
    kind: String(row.kind) as ChangeKind,
    diff: JSON.parse(String(row.diff)) as RuleDiff,
  };
}
