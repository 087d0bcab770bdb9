/** Which database a setting names: `sqlite:PATH` or `postgres://…`. Nothing is connected here. */
import { SluiceError } from "sluice";
import { PostgresDriver } from "./postgres-driver.js";
import type { RuleRepository } from "./rule-repository.js";
import { SqlRepository } from "./sql-repository.js";
import { SqliteDriver } from "./sqlite-driver.js";

export function openRepository(database: string): RuleRepository {
  return new SqlRepository(driverFor(database));
}

/** Asks a database one question, and changes nothing in it. Resolves with its name, without a password. */
export async function probeDatabase(database: string): Promise<string> {
  const driver = driverFor(database);
  try {
    await driver.query("SELECT 1 AS one");
    return driver.name;
  } finally {
    await driver.close();
  }
}

function driverFor(database: string): SqliteDriver | PostgresDriver {
  if (database.startsWith("sqlite:") && database.length > "sqlite:".length) {
    return new SqliteDriver(database.slice("sqlite:".length));
  }
  if (/^postgres(ql)?:\/\//.test(database) && URL.canParse(database)) return new PostgresDriver(database);
  throw new SluiceError(
    "invalid-setting",
    // The value may hold a password: only its beginning is shown.
    `database: expected "sqlite:PATH" or "postgres://user@host/name", got ${JSON.stringify(database.slice(0, 12))}`,
  );
}
