/** The whole service, killed with SIGKILL the moment it has answered: what it answered is in force after the next start. */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder } from "../harness/leash.js";
import { startPostgres } from "../harness/postgres.js";
import { startServerProcess } from "../harness/server-process.js";
import { ADMIN_TOKEN, perUser } from "./instance.js";

const program = fileURLToPath(new URL("../../packages/server/bin/sluice.js", import.meta.url));

async function serve(database: string | undefined, cwd: string) {
  const port = await freePort();
  const args = [program, "serve", "--port", String(port), "--grpc-port", "0", "--admin-token", ADMIN_TOKEN];
  const more = database === undefined ? [] : ["--database", database];
  const server = await startServerProcess({
    command: process.execPath,
    args: [...args, ...more],
    cwd,
    readyLine: /Rules in force/,
  });
  const call = async (method: string, body?: unknown) => {
    const answer = await fetch(`http://127.0.0.1:${port}/admin/v1/rules`, {
      method,
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as { version: number; rules: unknown } };
  };
  return { server, call };
}

async function surviveCrashes(database: string | undefined): Promise<void> {
  const cwd = makeTempFolder("service");
  let version = 0;
  for (let round = 1; round <= 3; round++) {
    const { server, call } = await serve(database, cwd);
    if (round > 1) expect((await call("GET")).body).toEqual({ version, rules: [perUser(round - 1)] });
    const answered = await call("PUT", { rules: [perUser(round)] });
    await server.kill();
    expect(answered.status).toBe(200);
    version = answered.body.version;
  }
  const { server, call } = await serve(database, cwd);
  expect((await call("GET")).body).toEqual({ version, rules: [perUser(3)] });
  await server.stop();
}

describe("a change that was answered survives kill -9 of the service", () => {
  test("with SQLite", () => surviveCrashes(undefined));

  test.skipIf(whyMissing("postgresql"))("with PostgreSQL", async () => {
    await using postgres = await startPostgres();
    await surviveCrashes(postgres.createDatabase("rules"));
  });
});
