/** One suite on both databases, each a real one: what the repository has answered is there, once, and in order. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrate, migrations } from "../../packages/server/src/configuration/repository/migrations.js";
import { openRepository } from "../../packages/server/src/configuration/repository/open-repository.js";
import { PostgresDriver } from "../../packages/server/src/configuration/repository/postgres-driver.js";
import type { NewVersion } from "../../packages/server/src/configuration/repository/rule-repository.js";
import { SqliteDriver } from "../../packages/server/src/configuration/repository/sqlite-driver.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { type PostgresServer, startPostgres } from "../harness/postgres.js";

let postgres: PostgresServer | undefined;
let made = 0;

beforeAll(async () => {
  if (whyMissing("postgresql") === undefined) postgres = await startPostgres();
});
afterAll(() => postgres?.stop());

const databases = [
  { kind: "SQLite", missing: undefined, fresh: () => `sqlite:${join(makeTempFolder("sqlite"), "rules.db")}` },
  {
    kind: "PostgreSQL",
    missing: whyMissing("postgresql"),
    fresh: () => postgres!.createDatabase(`test_${process.pid}_${++made}`),
  },
];

const driverOf = (url: string) =>
  url.startsWith("sqlite:") ? new SqliteDriver(url.slice("sqlite:".length)) : new PostgresDriver(url);

function change(base: number, more: Partial<NewVersion> = {}): NewVersion {
  const diff = { added: 1, removed: 0, changed: 0, reordered: false, changes: [] };
  const document = `{"rules":[]} ${base}`;
  return { base, author: "ann", message: "why", kind: "document", document, digest: `d${base}`, diff, ...more };
}

test("a SQLite file is for its owner alone, and so are the files beside it", async () => {
  const file = join(makeTempFolder("sqlite"), "rules.db");
  const repository = openRepository(`sqlite:${file}`);
  await repository.commit(change(0));
  for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o077, name).toBe(0);
  await repository.close();
});

test.skipIf(whyMissing("postgresql"))(
  "PostgreSQL may end a connection within a transaction: the change fails, and the next one goes through",
  async () => {
    const driver = new PostgresDriver(postgres!.createDatabase(`test_${process.pid}_${++made}`));
    const cutOff = driver.exclusively(async (query) => {
      const [own] = await query("SELECT pg_backend_pid() AS pid");
      await driver.query("SELECT pg_terminate_backend($1)", [Number(own!.pid)]);
      // Longer than the end of the connection takes to arrive.
      await sleep(200);
      await query("SELECT 1");
    });
    await expect(cutOff).rejects.toThrow();
    expect(await driver.exclusively((query) => query("SELECT 1 AS one"))).toEqual([{ one: 1 }]);
    await driver.close();
  },
);

describe.each(databases)("the repository on $kind", ({ missing, fresh }) => {
  describe.skipIf(missing)("holds its contract:", () => {
    test("secrets of an alert receiver come back whatever its name is", async () => {
      const repository = openRepository(fresh());
      const secrets = { constructor: { url: "https://a.example", secret: "s" }, ops: { key: "k" } };
      await repository.alerts.commitPolicy({
        ...{ base: 0, author: "ann", message: "why", document: "{}", summary: {} },
        secrets,
      });
      expect((await repository.alerts.policy())!.secrets).toEqual(secrets);
      expect(Object.keys(Object)).toEqual([]);
      await repository.close();
    });

    test("an empty database has no version, no audit and no token", async () => {
      const repository = openRepository(fresh());
      expect(await repository.head()).toBeUndefined();
      expect(await repository.read(1)).toBeUndefined();
      expect(await repository.versions({ limit: 10 })).toEqual([]);
      expect(await repository.audit({ limit: 10 })).toEqual([]);
      expect(await repository.tokens()).toEqual([]);
      await repository.close();
    });

    test("a change keeps author, message, document and diff, and is audited in the same transaction", async () => {
      const repository = openRepository(fresh());
      const before = Date.now();
      const mark = await repository.commit(change(0, { document: 'any text, "quoted", ü \u2028' }));
      expect(mark).toMatchObject({ version: 1, digest: "d0" });
      const { document, ...summary } = (await repository.read(1))!;
      expect(document).toBe('any text, "quoted", ü \u2028');
      expect(summary).toMatchObject({ version: 1, author: "ann", message: "why", kind: "document", digest: "d0" });
      expect(summary.createdAtMs).toBeGreaterThanOrEqual(before);
      expect(summary.diff).toEqual(change(0).diff);
      expect(await repository.versions({ limit: 10 })).toEqual([summary]);
      expect(await repository.audit({ limit: 10 })).toMatchObject([
        { id: 1, actor: "ann", action: "rules.changed", target: "version 1", details: { version: 1, added: 1 } },
      ]);
      await repository.close();
    });

    test("a change from an older version than the newest writes nothing", async () => {
      const repository = openRepository(fresh());
      await repository.commit(change(0));
      expect(await repository.commit(change(0))).toBeUndefined();
      expect(await repository.commit(change(5))).toBeUndefined();
      expect((await repository.head())?.version).toBe(1);
      expect(await repository.audit({ limit: 10 })).toHaveLength(1);
      await repository.close();
    });

    test("of twenty writers from the same version exactly one wins, over several connections", async () => {
      const database = fresh();
      const repositories = Array.from({ length: 4 }, () => openRepository(database));
      const marks = await Promise.all(Array.from({ length: 20 }, (_, i) => repositories[i % 4]!.commit(change(0))));
      expect(marks.filter((mark) => mark !== undefined)).toHaveLength(1);
      await Promise.all(repositories.map((repository) => repository.close()));
    });

    test("versions and audit are paged from the newest", async () => {
      const repository = openRepository(fresh());
      for (let base = 0; base < 5; base++) await repository.commit(change(base));
      const numbers = async (before?: number) =>
        (await repository.versions({ before, limit: 2 })).map(({ version }) => version);
      expect(await numbers()).toEqual([5, 4]);
      expect(await numbers(4)).toEqual([3, 2]);
      expect((await repository.audit({ before: 3, limit: 5 })).map(({ id }) => id)).toEqual([2, 1]);
      await repository.close();
    });

    test("a token's name is taken once, and removing it is audited", async () => {
      const repository = openRepository(fresh());
      const token = { name: "ci", role: "editor", hash: "abc", createdBy: "root" } as const;
      expect(await repository.addToken(token)).toBe(true);
      expect(await repository.addToken({ ...token, hash: "other" })).toBe(false);
      expect(await repository.addToken({ ...token, name: "CI", hash: "other" })).toBe(false);
      expect(await repository.tokens()).toMatchObject([token]);
      expect(await repository.removeToken("ci", "root")).toBe(true);
      expect(await repository.removeToken("ci", "root")).toBe(false);
      expect((await repository.audit({ limit: 9 })).map(({ action }) => action)).toEqual([
        "token.deleted",
        "token.created",
      ]);
      await repository.close();
    });

    test("ended sessions are kept until they would have ended, and a token that ends many has one row for all", async () => {
      const repository = openRepository(fresh());
      const soon = Date.now() + 3_600_000;
      await repository.endSession({ id: "over", name: "ci", endsAtMs: Date.now() - 1 });
      await repository.endSession({ id: "s1", name: "ci", endsAtMs: soon });
      await repository.endSession({ id: "s1", name: "ci", endsAtMs: soon });
      expect(await repository.endedSessions()).toEqual([{ id: "s1", name: "ci", endsAtMs: soon }]);
      for (let i = 2; i <= 101; i++) await repository.endSession({ id: `s${i}`, name: "ci", endsAtMs: soon + i });
      await repository.endSession({ id: "other", name: "ops", endsAtMs: soon });
      const kept = await repository.endedSessions();
      expect(kept).toHaveLength(2);
      expect(kept).toContainEqual({ id: undefined, name: "ci", endsAtMs: soon + 101 });
      await repository.close();
    });

    test("a document of eight megabytes comes back as it was", async () => {
      const repository = openRepository(fresh());
      const document = "0123456789abcdef".repeat(512 * 1024);
      await repository.commit(change(0, { document }));
      expect((await repository.read(1))?.document === document).toBe(true);
      await repository.close();
    });

    test("a database that an older Sluice made gets the missing steps, and keeps what it holds", async () => {
      const database = fresh();
      const driver = driverOf(database);
      expect(await migrate(driver, migrations.slice(0, 1))).toEqual([migrations[0]!.name]);
      await driver.exclusively((query) =>
        query("INSERT INTO sluice_audit VALUES (1, 0, 'ann', 'old', 'thing', '{}') RETURNING id"),
      );
      const repository = openRepository(database);
      expect(await repository.tokens()).toEqual([]);
      expect((await repository.audit({ limit: 9 })).map(({ action }) => action)).toEqual(["old"]);
      expect(await migrate(driver)).toEqual([]);
      await Promise.all([repository.close(), driver.close()]);
    });

    test("a database that a newer Sluice made is left alone, with a sentence that says so", async () => {
      const database = fresh();
      const driver = driverOf(database);
      await migrate(driver);
      await driver.exclusively((query) => query("INSERT INTO sluice_migrations VALUES (99, 'future', 0) RETURNING id"));
      const repository = openRepository(database);
      await expect(repository.head()).rejects.toThrow(/newer Sluice \(its step 99/);
      await Promise.all([repository.close(), driver.close()]);
    });

    test("a change that was answered is still there after kill -9 of the process that made it", async () => {
      const database = fresh();
      const built = new URL("../../packages/server/dist/configuration/repository/open-repository.js", import.meta.url);
      const script = `
        const { openRepository } = await import(${JSON.stringify(built.href)});
        const repository = openRepository(${JSON.stringify(database)});
        const change = (base) => (${change.toString()})(base);
        for (let base = 0; ; base++) { await repository.commit(change(base)); process.stdout.write(base + 1 + "\\n"); }`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      let answered = "";
      for await (const chunk of child.stdout) {
        answered += String(chunk);
        if (answered.split("\n").length > 20 && child.signalCode === null) child.kill("SIGKILL");
      }
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      const last = Number(answered.trim().split("\n").at(-1));
      const repository = openRepository(database);
      const head = await repository.head();
      // One more may have been committed than was told.
      expect(head?.version).toBeGreaterThanOrEqual(last);
      expect(head?.version).toBeLessThanOrEqual(last + 1);
      expect(await repository.audit({ limit: 500 })).toHaveLength(head!.version);
      await repository.close();
    });

    test("eight processes that start at once on an empty database make its tables once", async () => {
      const database = fresh();
      const built = new URL("../../packages/server/dist/configuration/repository/open-repository.js", import.meta.url);
      const script = `
        const { openRepository } = await import(${JSON.stringify(built.href)});
        const repository = openRepository(${JSON.stringify(database)});
        await repository.head();
        const mark = await repository.commit((${change.toString()})(0));
        await repository.close();
        process.stdout.write(mark === undefined ? "lost" : "won");`;
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const child = spawn(process.execPath, ["--input-type=module", "-e", script]);
          let said = "";
          child.stdout.on("data", (chunk) => (said += chunk));
          child.stderr.on("data", (chunk) => (said += chunk));
          await once(child, "close");
          return said;
        }),
      );
      expect(outcomes.sort()).toEqual([...Array(7).fill("lost"), "won"]);
    });
  });
});

describe("a database that cannot be reached", () => {
  test("rejects with database-unavailable, and names the database without its password", async () => {
    const repository = openRepository("postgres://ann:secret@127.0.0.1:1/rules");
    const error = await repository.head().catch((caught) => caught);
    expect(error).toMatchObject({ code: "database-unavailable", status: 503 });
    expect(error.message).toContain("postgres://127.0.0.1:1/rules");
    expect(error.message).not.toContain("secret");
    await repository.close();
  });

  test("a setting that names no database is refused without showing what may be a password", () => {
    expect(() => openRepository("mysql://ann:secret@host/db")).toThrow(/database: expected "sqlite:PATH"/);
    expect(() => openRepository("mysql://ann:secret@host/db")).not.toThrow(/secret/);
  });
});
