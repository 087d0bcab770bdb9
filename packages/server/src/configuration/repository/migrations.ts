/**
 * The tables, as a list of steps that only grows: a step that was released is never edited. Run at start, by whichever instance
 * comes first; the others wait for the same lock and find nothing left to do.
 */
import type { SqlDriver } from "./sql-driver.js";

interface Migration {
  readonly id: number;
  readonly name: string;
  readonly statements: readonly string[];
}

export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: "versions and audit",
    statements: [
      `CREATE TABLE sluice_versions (
        version BIGINT PRIMARY KEY,
        created_at_ms BIGINT NOT NULL,
        author TEXT NOT NULL,
        message TEXT NOT NULL,
        kind TEXT NOT NULL,
        digest TEXT NOT NULL,
        diff TEXT NOT NULL,
        document TEXT NOT NULL
      )`,
      `CREATE TABLE sluice_audit (
        id BIGINT PRIMARY KEY,
        at_ms BIGINT NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        target TEXT NOT NULL,
        details TEXT NOT NULL
      )`,
    ],
  },
  {
    id: 2,
    name: "tokens",
    statements: [
      `CREATE TABLE sluice_tokens (
        name TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE,
        created_at_ms BIGINT NOT NULL,
        created_by TEXT NOT NULL
      )`,
    ],
  },
  {
    id: 3,
    name: "ended sessions",
    statements: [
      `CREATE TABLE sluice_ended_sessions (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        ends_at_ms BIGINT NOT NULL
      )`,
    ],
  },
  {
    id: 4,
    name: "alert policy",
    statements: [
      `CREATE TABLE sluice_alert_policies (
        version BIGINT PRIMARY KEY,
        created_at_ms BIGINT NOT NULL,
        author TEXT NOT NULL,
        message TEXT NOT NULL,
        document TEXT NOT NULL
      )`,
      `CREATE TABLE sluice_alert_secrets (
        receiver TEXT NOT NULL,
        field TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (receiver, field)
      )`,
      `CREATE TABLE sluice_silences (
        id TEXT PRIMARY KEY,
        created_at_ms BIGINT NOT NULL,
        ends_at_ms BIGINT NOT NULL,
        author TEXT NOT NULL,
        reason TEXT NOT NULL,
        matching TEXT NOT NULL
      )`,
    ],
  },
  {
    id: 5,
    name: "expiry and last use of tokens, sessions",
    statements: [
      "ALTER TABLE sluice_tokens ADD COLUMN expires_at_ms BIGINT",
      "ALTER TABLE sluice_tokens ADD COLUMN last_used_at_ms BIGINT",
      `CREATE TABLE sluice_sessions (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        created_at_ms BIGINT NOT NULL,
        ends_at_ms BIGINT NOT NULL,
        agent TEXT NOT NULL
      )`,
    ],
  },
];

/** `steps`: for tests, that come from an older database. Resolves with the names of the steps that were taken. */
export function migrate(driver: SqlDriver, steps: readonly Migration[] = migrations): Promise<string[]> {
  return driver.exclusively(async (query) => {
    await query(
      "CREATE TABLE IF NOT EXISTS sluice_migrations (id BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at_ms BIGINT NOT NULL)",
    );
    const rows = await query("SELECT id FROM sluice_migrations");
    const taken = new Set(rows.map(({ id }) => Number(id)));
    const newest = Math.max(0, ...taken);
    const known = Math.max(...migrations.map(({ id }) => id));
    if (newest > known) {
      throw new Error(
        `${driver.name} was made by a newer Sluice (its step ${newest}, ours ${known}): upgrade this one`,
      );
    }
    const missing = steps.filter(({ id }) => !taken.has(id));
    for (const { id, name, statements } of missing) {
      for (const statement of statements) await query(statement);
      await query("INSERT INTO sluice_migrations (id, name, applied_at_ms) VALUES ($1, $2, $3) RETURNING id", [
        id,
        name,
        Date.now(),
      ]);
    }
    return missing.map(({ name }) => name);
  });
}
