/** Databases that released versions have filled are read by this one: rules, history, audit, tokens. Redis: test/redis/layouts.test.ts. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { SqliteDriver } from "../../packages/server/src/configuration/repository/sqlite-driver.js";
import { storedToken } from "../../scripts/write-stored-layout.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { postJson, startTestService } from "../service/running-service.js";

const folder = fileURLToPath(new URL(".", import.meta.url));
const released = readdirSync(folder).filter((file) => file.endsWith(".sql"));

test("there is at least one", () => {
  expect(released.length).toBeGreaterThan(0);
});

async function restore(file: string): Promise<string> {
  const database = join(makeTempFolder("released"), "sluice.db");
  const driver = new SqliteDriver(database);
  await driver.exclusively(async (query) => {
    for (const statement of readFileSync(join(folder, file), "utf8").split(/;\n(?=CREATE|INSERT|$)/)) {
      if (statement.trim() !== "") await query(statement);
    }
  });
  await driver.close();
  return `sqlite:${database}`;
}

describe.each(released)("%s", (file) => {
  test("a service starts on it, enforces its rules, knows its history and its tokens, and takes changes", async () => {
    await using service = await startTestService({ settings: { database: await restore(file) } });
    expect(service.rulesVersion).toBe(3);
    const answer = await postJson(`${service.http}/v1/check`, { attributes: { user: "acme" } });
    expect(answer.body.checks).toContainEqual(expect.objectContaining({ rule: "per-user", limit: 5000 }));

    const headers = { authorization: `Bearer ${storedToken}`, "content-type": "application/json" };
    const get = async (path: string) =>
      (await (await fetch(`${service.http}/admin/v1${path}`, { headers })).json()) as Record<string, unknown[]>;
    expect((await get("/versions")).versions).toHaveLength(3);
    expect((await get("/audit")).entries).toContainEqual(
      expect.objectContaining({ action: "key.reset", target: "per-user" }),
    );
    const back = await fetch(`${service.http}/admin/v1/versions/2/rollback`, { method: "POST", headers, body: "{}" });
    expect(back.status).toBe(200);
    expect(await get("/rules/per-user")).toMatchObject({ limit: 100 });
  });
});
