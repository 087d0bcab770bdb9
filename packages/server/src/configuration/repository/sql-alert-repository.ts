/** The alert repository in SQL; statements as in `sql-repository.ts`. */
import type {
  AlertRepository,
  NewAlertPolicy,
  ReceiverSecrets,
  Silence,
  SilenceMatch,
  StoredAlertPolicy,
} from "./alert-repository.js";
import type { NewAuditEntry } from "./rule-repository.js";
import type { Query } from "./sql-driver.js";

interface Database {
  query: Query;
  exclusively<T>(work: (query: Query) => Promise<T>): Promise<T>;
  /** Within a transaction. */
  audit(query: Query, entry: NewAuditEntry): Promise<void>;
}

const MOST_SILENCES = 200;

export class SqlAlertRepository implements AlertRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async policy(): Promise<(StoredAlertPolicy & { secrets: ReceiverSecrets }) | undefined> {
    const [row] = await this.#database.query(
      "SELECT version, created_at_ms, author, message, document FROM sluice_alert_policies ORDER BY version DESC LIMIT 1",
    );
    if (row === undefined) return undefined;
    const rows = await this.#database.query("SELECT receiver, field, value FROM sluice_alert_secrets");
    // A Map, not an object: a receiver may be named "constructor".
    const secrets = new Map<string, Record<string, string>>();
    for (const { receiver, field, value } of rows) {
      const own = secrets.get(String(receiver)) ?? {};
      own[String(field)] = String(value);
      secrets.set(String(receiver), own);
    }
    return {
      version: Number(row.version),
      createdAtMs: Number(row.created_at_ms),
      author: String(row.author),
      message: String(row.message),
      document: String(row.document),
      secrets: Object.fromEntries(secrets),
    };
  }

  commitPolicy({ base, author, message, document, secrets, summary }: NewAlertPolicy): Promise<number | undefined> {
    return this.#database.exclusively(async (query) => {
      const [newest] = await query("SELECT max(version) AS version FROM sluice_alert_policies");
      if (Number(newest!.version ?? 0) !== base) return undefined;
      const version = base + 1;
      await query(
        `INSERT INTO sluice_alert_policies (version, created_at_ms, author, message, document)
         VALUES ($1, $2, $3, $4, $5) RETURNING version`,
        [version, Date.now(), author, message, document],
      );
      await query("DELETE FROM sluice_alert_secrets RETURNING receiver");
      for (const [receiver, fields] of Object.entries(secrets)) {
        for (const [field, value] of Object.entries(fields)) {
          await query(
            "INSERT INTO sluice_alert_secrets (receiver, field, value) VALUES ($1, $2, $3) RETURNING receiver",
            [receiver, field, value],
          );
        }
      }
      const details = { version, message, ...summary };
      await this.#database.audit(query, {
        actor: author,
        action: "alerts.changed",
        target: `version ${version}`,
        details,
      });
      return version;
    });
  }

  async silences(): Promise<Silence[]> {
    const rows = await this.#database.query(
      `SELECT id, created_at_ms, ends_at_ms, author, reason, matching FROM sluice_silences
       WHERE ends_at_ms > $1 ORDER BY ends_at_ms`,
      [Date.now()],
    );
    return rows.map((row) => ({
      id: String(row.id),
      match: JSON.parse(String(row.matching)) as SilenceMatch,
      reason: String(row.reason),
      author: String(row.author),
      createdAtMs: Number(row.created_at_ms),
      endsAtMs: Number(row.ends_at_ms),
    }));
  }

  addSilence({ id, match, reason, author, createdAtMs, endsAtMs }: Silence): Promise<boolean> {
    return this.#database.exclusively(async (query) => {
      await query("DELETE FROM sluice_silences WHERE ends_at_ms <= $1 RETURNING id", [Date.now()]);
      const [kept] = await query("SELECT count(*) AS count FROM sluice_silences");
      if (Number(kept!.count) >= MOST_SILENCES) return false;
      await query(
        `INSERT INTO sluice_silences (id, created_at_ms, ends_at_ms, author, reason, matching)
         VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
        [id, createdAtMs, endsAtMs, author, reason, JSON.stringify(match)],
      );
      const details = { ...match, reason, until: new Date(endsAtMs).toISOString() };
      await this.#database.audit(query, { actor: author, action: "alerts.silenced", target: id, details });
      return true;
    });
  }

  endSilence(id: string, by: string): Promise<boolean> {
    return this.#database.exclusively(async (query) => {
      const ended = await query("DELETE FROM sluice_silences WHERE id = $1 AND ends_at_ms > $2 RETURNING id", [
        id,
        Date.now(),
      ]);
      if (ended.length === 0) return false;
      await this.#database.audit(query, { actor: by, action: "alerts.unsilenced", target: id, details: {} });
      return true;
    });
  }
}
