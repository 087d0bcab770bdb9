/** PostgreSQL through a small pool. Every wait has an end: a server that is frozen rather than gone must not hold up anything. */
import type { Pool } from "pg";
import type { Query, SqlDriver, SqlRow, SqlValue } from "./sql-driver.js";

const CONNECT_MS = 2_000;
const QUERY_MS = 5_000;
/** Writers of all processes take this advisory lock: the bytes of "sluice" as a number. */
const WRITE_LOCK = 126_909_663_503_205;

export class PostgresDriver implements SqlDriver {
  readonly name: string;
  readonly #url: string;
  #opened: Promise<Pool> | undefined;

  constructor(url: string) {
    const { host, pathname } = new URL(url);
    this.name = `postgres://${host}${pathname}`;
    this.#url = url;
  }

  #pool(): Promise<Pool> {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  /** The library is loaded only where this database is used. */
  async #open(): Promise<Pool> {
    const { Pool } = await import("pg");
    const pool = new Pool({
      connectionString: this.#url,
      max: 4,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: QUERY_MS,
      keepAlive: true,
      application_name: "sluice",
      allowExitOnIdle: true,
    });
    // An idle connection that breaks: the next query opens another, and reports if it cannot.
    pool.on("error", () => undefined);
    // The pool listens to idle connections only. One that breaks within a transaction would end the process; its next query reports it.
    pool.on("connect", (client) => client.on("error", () => undefined));
    return pool;
  }

  query: Query = async (statement, parameters = []) =>
    rowsOf(await (await this.#pool()).query(statement, [...parameters]));

  async exclusively<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const client = await (await this.#pool()).connect();
    const query = async (statement: string, parameters: readonly SqlValue[] = []) =>
      rowsOf(await client.query(statement, [...parameters]));
    try {
      await query("BEGIN");
      await query("SELECT pg_advisory_xact_lock($1)", [WRITE_LOCK]);
      const result = await work(query);
      await query("COMMIT");
      client.release();
      return result;
    } catch (error) {
      // A connection in an unknown state is thrown away; the server rolls back when it closes.
      const rolledBack = await query("ROLLBACK").then(
        () => true,
        () => false,
      );
      client.release(!rolledBack);
      throw error;
    }
  }

  async close(): Promise<void> {
    await (await this.#opened)?.end();
  }
}

function rowsOf(result: { rows: unknown[] }): SqlRow[] {
  return result.rows as SqlRow[];
}
