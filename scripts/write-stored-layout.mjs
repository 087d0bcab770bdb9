/**
 * `npm run release -- --write-layout`: the database of this version, as a service of this version has filled it, as SQL.
 * Out: test/released/VERSION.sql, committed with the release: `test/released` holds that every later version reads it.
 * What lies in Redis is held by test/redis/layouts.test.ts, byte by byte.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./run-command.mjs";

/** Known to the test, and to nobody else worth a secret. */
export const storedToken = "stored-layout-token";

/**
 * @param {string} version
 * @returns {Promise<string>} the file
 */
export async function writeStoredLayout(version) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-layout-"));
  try {
    await fill(folder);
    const file = join(root, "test", "released", `${version}.sql`);
    writeFileSync(file, await dump(join(folder, "sluice.db")));
    return file;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder */
async function fill(folder) {
  const token = "stored-layout-admin";
  const flags = [
    "--port",
    "0",
    "--grpc-port",
    "0",
    "--data-folder",
    folder,
    "--admin-token",
    token,
    "--drain-delay",
    "0",
  ];
  const service = spawn(process.execPath, [join(root, "packages/server/bin/sluice.js"), "serve", ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  for await (const chunk of service.stdout) {
    output += chunk;
    if (output.includes("/v1/check -H")) break;
  }
  const admin = `${/HTTP +(\S+)/.exec(output)?.[1]}/admin/v1`;
  /** @type {(method: string, path: string, body?: unknown) => Promise<void>} */
  const ask = async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(admin + path, { method, headers, body: JSON.stringify(body ?? {}) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  };
  const rule = { id: "per-user", key: ["user"], algorithm: "rolling-window", limit: 100, window: "1m" };
  await ask("PUT", "/rules/per-user?message=the+first", rule);
  await ask("PUT", "/rules/per-user", { ...rule, limit: 7, overrides: [{ match: { user: "acme" }, limit: 5000 }] });
  await ask("POST", "/keys/reset", { rule: "per-user", attributes: { user: "ann" } });
  service.kill("SIGTERM");
  await once(service, "exit");
}

/** @param {string} file */
async function dump(file) {
  const folder = new URL("../packages/server/dist/configuration/repository/", import.meta.url);
  const { openRepository } = await import(new URL("open-repository.js", folder).href);
  const { SqliteDriver } = await import(new URL("sqlite-driver.js", folder).href);
  const repository = openRepository(`sqlite:${file}`);
  const hash = createHash("sha256").update(storedToken).digest("hex");
  await repository.addToken({ name: "stored-bot", role: "editor", hash, createdBy: "admin" });
  await repository.close();
  const driver = new SqliteDriver(file);
  try {
    const tables = await driver.query("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid");
    const statements = [];
    for (const { name, sql } of tables) {
      statements.push(String(sql).replaceAll(/\s+/g, " "));
      if (!/^create table/i.test(String(sql))) continue;
      for (const row of await driver.query(`SELECT * FROM ${name}`)) statements.push(insert(String(name), row));
    }
    return `${statements.join(";\n")};\n`;
  } finally {
    await driver.close();
  }
}

/**
 * @param {string} table
 * @param {Readonly<Record<string, unknown>>} row
 */
function insert(table, row) {
  const values = Object.values(row).map((value) =>
    value === null ? "NULL" : typeof value === "number" ? value : `'${String(value).replaceAll("'", "''")}'`,
  );
  return `INSERT INTO ${table} (${Object.keys(row).join(", ")}) VALUES (${values.join(", ")})`;
}
