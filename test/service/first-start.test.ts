/** The service as a process: its first start, its printed screen, its settings, its workers. Runs the built command. */
import { execFile } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { settingNames } from "../../packages/server/src/settings/settings.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { postJson, runSluice, startServiceProcess } from "./running-service.js";

test("a first start needs nothing, prints one screen, and its curl line ends in a refusal", async () => {
  const startedMs = performance.now();
  const service = await startServiceProcess();
  console.log(`serving ${((performance.now() - startedMs) / 1000).toFixed(2)} s after the start`);
  const screen = service.output();
  expect(screen.split("\n").length).toBeLessThan(30);
  expect(screen).toContain("starter-per-user");
  const tokenFile = join(service.folder, "admin-token");
  expect(screen).toContain(`token ${readFileSync(tokenFile, "utf8").trim()}   (kept in ${tokenFile})`);
  expect(statSync(join(service.folder, "admin-token")).mode & 0o777).toBe(0o600);
  const curl = /^ {2}(curl .*)$/m.exec(screen)![1]!;
  const answers: boolean[] = [];
  for (let i = 0; i < 6; i++) {
    const { stdout } = await promisify(execFile)("sh", ["-c", curl]);
    answers.push(JSON.parse(stdout).allowed);
  }
  expect(answers).toEqual([true, true, true, true, true, false]);
  expect(await service.end()).toBe(0);
});

test("rules and token outlive a restart", async () => {
  const folder = makeTempFolder("restart");
  const settings = { "data-folder": folder };
  const first = await startServiceProcess({ settings });
  const token = readFileSync(join(folder, "admin-token"), "utf8").trim();
  const rule = { id: "added", key: ["user"], algorithm: "fixed-window", limit: 7, window: "1h" };
  const added = await fetch(`${first.http}/admin/v1/rules/added`, {
    method: "PUT",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(rule),
  });
  expect(added.status).toBeLessThan(300);
  expect((await postJson(`${first.http}/v1/check`, { attributes: { user: "x" } })).body.checks).toHaveLength(2);
  await first.end("SIGKILL");
  const second = await startServiceProcess({ settings });
  expect(second.output()).toContain("added");
  // A log does not hold the token again after every restart.
  expect(first.output()).toContain(token);
  expect(second.output()).not.toContain(token);
  expect(second.output()).toContain(`token in ${join(folder, "admin-token")}`);
  expect(readFileSync(join(folder, "admin-token"), "utf8").trim()).toBe(token);
  await second.end();
});

describe("settings", () => {
  test("--help lists every one with its default", async () => {
    const { status, stdout } = await runSluice(["serve", "--help"]);
    expect(status).toBe(0);
    for (const name of settingNames) expect(stdout).toContain(`--${name} <`);
    expect(stdout.replaceAll(/\s+/g, " ")).toContain("(default: 127.0.0.1)");
  });

  test.each([
    ["a port that is none", ["--port", "http"], '--port: expected a whole number from 0 to 65535, got "http"'],
    ["two workers on the memory store", ["--workers", "2"], "workers: expected 1 with the memory store, got 2"],
    ["a store that is none", ["--store", "mysql://x"], "--store: expected memory, or a URL"],
    [
      "a file that is not there",
      ["--rules", "nowhere.yaml"],
      '--rules: expected a file that can be read, got "nowhere.yaml"',
    ],
    ["half of TLS", ["--tls-cert", "package.json"], "--tls-cert: expected a file"],
    ["a deadline without a unit", ["--store-deadline", "50"], '--store-deadline: expected a duration such as "50ms"'],
    ["a flag that is none", ["--prot", "1"], "unknown option '--prot'"],
  ])("%s stops the start with status 2 and says what was expected", async (_what, args, message) => {
    const { status, stderr } = await runSluice(["serve", ...args], { cwd: makeTempFolder("settings") });
    expect(status).toBe(2);
    expect(stderr).toContain(message);
  });

  test("a variable and a file are named as they came, and a secret is not repeated", async () => {
    const cwd = makeTempFolder("settings");
    writeFileSync(join(cwd, "sluice.yaml"), "grpc-port: many\ncolour: blue\n");
    const { status, stderr } = await runSluice(["serve"], {
      cwd,
      env: { SLUICE_PORT: "-1", SLUICE_API_TOKEN: "short-secret" },
    });
    expect(status).toBe(2);
    expect(stderr).toContain('SLUICE_PORT: expected a whole number from 0 to 65535, got "-1"');
    expect(stderr).toContain('grpc-port in sluice.yaml: expected a whole number from 0 to 65535, got "many"');
    expect(stderr).toContain("colour in sluice.yaml: expected the name of a setting");
    expect(stderr).toContain("SLUICE_API_TOKEN: expected a token of 16 to 256");
    expect(stderr).not.toContain("short-secret");
  });

  test("files that a setting names are part of it: status 2, the setting, what was expected, what came", async () => {
    const cwd = makeTempFolder("bad-files");
    const globalRule = "{id: g, key: [], algorithm: rolling-window, limit: 5, window: 1m, scope: global}";
    writeFileSync(join(cwd, "bad.yaml"), 'rules:\n  - {id: a, key: [], algorithm: gcra, limit: 1, window: "-5"}\n');
    writeFileSync(join(cwd, "global.yaml"), `rules:\n  - ${globalRule}\n`);
    writeFileSync(join(cwd, "x.pem"), "no PEM\n");
    const expected: [string[], string, string][] = [
      [["--rules", "bad.yaml"], "rules: expected", 'rules[0].window: expected a duration such as "30s", got "-5"'],
      [["--rules", "global.yaml"], "global-store: expected", "rules[0].scope: expected region, got global"],
      [["--config", "none.yaml"], "config: expected a file that can be read", 'got "none.yaml" (ENOENT)'],
      [["--tls-cert", "x.pem", "--tls-key", "x.pem"], "tls-cert, tls-key: expected a certificate", "got x.pem, x.pem"],
    ];
    const ends = expected.map(async ([flags, setting, mistake]) => {
      const { status, stderr } = await runSluice(
        ["serve", "--port", "0", "--grpc-port", "0", "--data-folder", flags[1]!.replace(".", "-"), ...flags],
        { cwd },
      );
      expect(stderr).toContain(setting);
      expect(stderr).toContain(mistake);
      expect(status).toBe(2);
    });
    await Promise.all(ends);
  });

  test("a port that is taken fails with status 1 and names it", async () => {
    const service = await startServiceProcess();
    const { status, stderr } = await runSluice(["serve", "--port", new URL(service.http).port, "--grpc-port", "0"], {
      cwd: makeTempFolder("taken"),
    });
    expect(status).toBe(1);
    expect(stderr).toContain("is taken");
    await service.end();
  });

  test.each(["192.0.2.1", "http://127.0.0.1", "[::1]"])(
    "the host %s, where nothing can listen, is a wrong setting",
    async (host) => {
      const { status, stderr } = await runSluice(["serve", "--host", host, "--port", "0", "--grpc-port", "0"], {
        cwd: makeTempFolder("host"),
      });
      expect(stderr).toContain(`host: expected an address of this machine, or a name of one, got "${host}" (E`);
      expect(status).toBe(2);
    },
  );

  test("a start beyond loopback without a token warns loudly", async () => {
    const service = await startServiceProcess({ settings: { host: "0.0.0.0" } });
    expect(service.output()).toContain("THE DATA PLANE IS OPEN");
    await service.end();
  });
});

describe.skipIf(whyMissing("redis"))("workers", () => {
  test("share one limit on Redis, add up their metrics, and end together", async () => {
    const redis = await startRedis();
    const service = await startServiceProcess({
      rules: [{ id: "shared", key: ["user"], algorithm: "rolling-window", limit: 50, window: "1h" }],
      settings: { workers: "2", store: redis.url, "store-deadline": "2s" },
    });
    const answers = await Promise.all(
      Array.from({ length: 200 }, () =>
        postJson(`${service.http}/v1/check`, { attributes: { user: "x" } }, { connection: "close" }),
      ),
    );
    expect(answers.filter(({ body }) => body.allowed)).toHaveLength(50);
    const metrics = await (await fetch(`${service.http}/metrics`)).text();
    const sum = [...metrics.matchAll(/^sluice_requests_total\{.*transport="http".*\} (\d+)$/gm)].reduce(
      (total, [, n]) => total + Number(n),
      0,
    );
    expect(sum).toBe(200);
    expect(await service.end()).toBe(0);
    await redis.stop();
  });

  test("with a worker that hangs, whoever asks for metrics is told so instead of waiting", async () => {
    await using redis = await startRedis();
    const service = await startServiceProcess({ settings: { workers: "2", store: redis.url } });
    const pid = service.child.pid!;
    const worker = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ")[0]);
    process.kill(worker, "SIGSTOP");
    try {
      // Connections go to the workers in turn: of two, one meets the worker that answers.
      const ask = () =>
        fetch(`${service.http}/metrics`, { headers: { connection: "close" }, signal: AbortSignal.timeout(30_000) });
      const answer = await Promise.any([ask(), ask()]);
      expect(answer.status).toBe(500);
    } finally {
      process.kill(worker, "SIGCONT");
    }
    expect(await service.end(), service.output()).toBe(0);
  });
});
