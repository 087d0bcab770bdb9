/**
 * The repository's contract with a database, and no more. Statements are written once, with `$1` for the first parameter, in the
 * SQL that SQLite and PostgreSQL share; a statement that writes says RETURNING, so that each is a query.
 */

export type SqlValue = string | number | null;
export type SqlRow = Readonly<Record<string, unknown>>;
export type Query = (statement: string, parameters?: readonly SqlValue[]) => Promise<SqlRow[]>;

export interface SqlDriver {
  /** For messages: where the database is, without its password. */
  readonly name: string;
  /** One statement that reads. */
  query: Query;
  /**
   * Writers come one after the other, over all processes: what the work reads is still so when it commits. A rejection rolls
   * everything back. Resolves when the change is on disk.
   */
  exclusively<T>(work: (query: Query) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}
