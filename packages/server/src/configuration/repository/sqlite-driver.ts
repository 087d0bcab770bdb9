/**
 * SQLite in a file, the embedded default. Several processes may share the file: WAL lets readers go on beside the one writer.
 * libsql's `all` and `exec` work off the thread that decides requests; its `run` and `get` do not, and are not used.
 */
import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "libsql/promise";
import type { Query, SqlDriver, SqlRow } from "./sql-driver.js";

/** How long a writer waits for another one, or for the file at the start. */
const BUSY_MS = 5_000;

type Connection = InstanceType<typeof Database>;

export class SqliteDriver implements SqlDriver {
  readonly name: string;
  readonly #path: string;
  /** Two, so that a read never lands inside another caller's transaction. */
  #reader: Promise<Connection> | undefined;
  #writer: Promise<Connection> | undefined;
  #lastWrite: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
    this.name = `sqlite:${path}`;
  }

  query: Query = async (statement, parameters = []) => {
    this.#reader ??= this.#open();
    try {
      return await all(await this.#reader, statement, parameters);
    } catch (error) {
      this.#reader = undefined;
      throw error;
    }
  };

  exclusively<T>(work: (query: Query) => Promise<T>): Promise<T> {
    // One connection has one transaction at a time; other processes are kept apart by BEGIN IMMEDIATE.
    const mine = this.#lastWrite.then(() => this.#write(work));
    this.#lastWrite = mine.catch(() => undefined);
    return mine;
  }

  async #write<T>(work: (query: Query) => Promise<T>): Promise<T> {
    this.#writer ??= this.#open();
    const opening = this.#writer;
    const forget = () => {
      if (this.#writer === opening) this.#writer = undefined;
    };
    const connection = await opening.catch((error) => {
      forget();
      throw error;
    });
    await whenFree(() => connection.exec("BEGIN IMMEDIATE"));
    try {
      const result = await work((statement, parameters = []) => all(connection, statement, parameters));
      await connection.exec("COMMIT");
      return result;
    } catch (error) {
      await connection.exec("ROLLBACK").catch(forget);
      throw error;
    }
  }

  async #open(): Promise<Connection> {
    if (this.#path !== ":memory:") makePrivate(this.#path);
    const connection = new Database(this.#path, {});
    // The switch needs the file for itself: of eight processes that start together, seven must ask again.
    await whenFree(() => connection.exec("PRAGMA journal_mode = WAL"));
    // FULL waits for the disk at every commit: NORMAL may lose the last ones when the machine stops.
    await connection.exec("PRAGMA synchronous = FULL");
    return connection;
  }

  async close(): Promise<void> {
    await this.#lastWrite;
    for (const opening of [this.#reader, this.#writer]) {
      const connection = await opening?.catch(() => undefined);
      connection?.close();
    }
    this.#reader = undefined;
    this.#writer = undefined;
  }
}

async function all(connection: Connection, statement: string, parameters: readonly unknown[]): Promise<SqlRow[]> {
  // SQLite's numbered parameters are spelled ?1.
  const prepared = await connection.prepare(statement.replace(/\$(\d+)/g, "?$1"));
  return (await prepared.all([...parameters])) as SqlRow[];
}

/**
 * Asks until the file is not locked. SQLite's own way of waiting would block one of libsql's few threads, and with as many
 * waiting as there are threads, the writer that they wait for could not go on.
 */
async function whenFree(ask: () => Promise<unknown>): Promise<void> {
  const giveUpAtMs = performance.now() + BUSY_MS;
  for (;;) {
    try {
      await ask();
      return;
    } catch (error) {
      if (performance.now() > giveUpAtMs || !String(error).includes("locked")) throw error;
      await sleep(2 + Math.random() * 20);
    }
  }
}

/** It holds tokens' hashes and who did what. SQLite gives the files beside it the mode that it has. */
function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  closeSync(openSync(path, "a", 0o600));
  try {
    chmodSync(path, 0o600);
  } catch {
    // Somebody else's file that we may write: its mode is its owner's choice.
  }
}
