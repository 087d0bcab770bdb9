/** `sluice tokens|alerts|audit|keys|blocks|completion|doctor`, as an operator uses them in a shell. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { postJson, runSluice, type ServiceProcess, startServiceProcess } from "./running-service.js";

const login: Rule = { id: "login", key: ["ip"], algorithm: "rolling-window", limit: 5, window: "10m", blockFor: "1h" };

describe("a running service", () => {
  let service: ServiceProcess;
  let token: string;
  beforeAll(async () => {
    service = await startServiceProcess();
    token = readFileSync(join(service.folder, "admin-token"), "utf8").trim();
    const added = await fetch(`${service.http}/admin/v1/rules/login`, {
      method: "PUT",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(login),
    });
    expect(added.status).toBeLessThan(300);
  });
  afterAll(() => service.end());

  const sluice = (...args: string[]) =>
    runSluice([...args, "--server", service.http], { env: { SLUICE_ADMIN_TOKEN: token } });

  test("tokens: one is made, works in its role, is listed without its secret, and ends", async () => {
    const made = await sluice("tokens", "create", "deploy-bot", "--role", "viewer");
    const secret = made.stdout.trim();
    expect(secret).toMatch(/^\S{16,}$/);
    const asBot = (...args: string[]) => runSluice([...args, "--server", service.http, "--token", secret]);
    expect((await asBot("audit")).status).toBe(0);
    const denied = await asBot("tokens", "create", "other");
    expect(denied.status).toBe(1);
    expect(denied.stderr).toMatch(/403/);
    const listed = await sluice("tokens");
    expect(listed.stdout).toMatch(/^deploy-bot +viewer +20\d\d-/m);
    expect(listed.stdout).not.toContain(secret);
    expect((await sluice("tokens", "create", "deploy-bot")).stderr).toMatch(/deploy-bot/);
    expect((await sluice("tokens", "delete", "deploy-bot")).stdout).toBe("deploy-bot: deleted\n");
    expect((await asBot("audit")).status).toBe(1);
    expect((await sluice("tokens", "create", "x", "--role", "owner")).status).toBe(2);
  });

  test("audit tells who did what to which", async () => {
    await sluice("reset", "login", "ip=1.2.3.4");
    const { stdout } = await sluice("audit");
    expect(stdout).toMatch(/key\.reset +login +.*1\.2\.3\.4/);
    expect(JSON.parse((await sluice("audit", "--limit", "1", "--json")).stdout).entries).toHaveLength(1);
  });

  test("blocks, also by its old name, lists what block began", async () => {
    await sluice("block", "login", "ip=6.6.6.6", "--for", "1h");
    expect((await sluice("blocks")).stdout).toMatch(/^login +ip=6\.6\.6\.6 +60 min$/m);
    expect((await sluice("blocked")).stdout).toContain("ip=6.6.6.6");
  });

  test("keys and alerts answer where nothing has happened yet", async () => {
    expect((await sluice("keys", "--rule", "none")).stdout).toMatch(/^no key was seen/);
    expect((await sluice("alerts", "--exit-code")).stdout).toBe("no alert fires\n");
    expect(JSON.parse((await sluice("alerts", "--all", "--json")).stdout)).toMatchObject({ alerts: [] });
  });

  test("thousands are spelled as in the console", async () => {
    await postJson(`${service.http}/v1/charge`, { attributes: { user: "big" }, cost: 1_234_567 });
    expect((await sluice("peek", "user=big")).stdout).toContain("-1,234,562");
  });
});

const bin = fileURLToPath(new URL("../../packages/server/bin/sluice.js", import.meta.url));

test("bash completes commands, their commands and options, and files after them", async () => {
  const script = `source <("$1" "$2" completion bash)
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; echo "\${COMPREPLY[*]}"; }
try sluice doc; try sluice rules app; try sluice rules apply file.yaml --dr; try sluice serve --grpc-p
try sluice tokens ""; try sluice nonsense doc; complete -p sluice`;
  const { stdout } = await promisify(execFile)("bash", ["-c", script, "bash", process.execPath, bin]);
  expect(stdout.split("\n").slice(0, 6)).toEqual([
    "doctor",
    "apply",
    "--dry-run",
    "--grpc-port",
    "list create delete",
    "doctor",
  ]);
  expect(stdout).toContain("complete -o default -F _sluice sluice");
  const asked = await runSluice(["completion", "tcsh"]);
  expect(asked.status).toBe(2);
  expect(asked.stderr).toContain("bash, zsh, fish");
});

describe("doctor", () => {
  const free = ["--port", "0", "--grpc-port", "0"];
  const doctor = (...args: string[]) => runSluice(["doctor", ...free, ...args], { cwd: makeTempFolder("doctor") });

  test("finds nothing wrong where nothing is, and makes no file", async () => {
    const cwd = makeTempFolder("doctor");
    const { status, stdout } = await runSluice(["doctor", ...free], { cwd });
    expect(stdout).toMatch(/^ok +settings +are understood$/m);
    expect(stdout).toMatch(/^ok +rules +\.sluice\/sluice\.db will be made$/m);
    expect(stdout).not.toMatch(/^(warning|failed)/m);
    expect(status).toBe(0);
    await expect(promisify(execFile)("ls", ["-A", cwd])).resolves.toMatchObject({ stdout: "" });
  });

  test("every wrong setting, a folder that cannot be written, and rules with a mistake are named, with status 1", async () => {
    const wrong = await doctor("--workers", "many", "--log-level", "loud");
    expect(wrong.status).toBe(1);
    expect(wrong.stdout).toMatch(/^failed +settings +--workers: expected .*\n +-> /m);
    expect(wrong.stdout).toMatch(/^failed +settings +--log-level: /m);
    expect((await doctor("--data-folder", "/dev/null/x")).stdout).toMatch(/^failed +data folder +.*cannot be written/m);
    const cwd = makeTempFolder("doctor");
    writeFileSync(join(cwd, "rules.yaml"), "rules:\n  - id: a\n    limit: -1\n");
    const rules = await runSluice(["doctor", ...free, "--rules", "rules.yaml", "--json"], { cwd });
    const { findings } = JSON.parse(rules.stdout);
    expect(findings).toContainEqual(expect.objectContaining({ check: "rules", verdict: "failed" }));
  });

  test("an open data plane beyond this machine is a warning, not a failure", async () => {
    const { status, stdout } = await doctor("--host", "0.0.0.0");
    expect(stdout).toMatch(/^warning +access +the data plane is open/m);
    expect(status).toBe(0);
  });

  test("a variable of envoyproxy/ratelimit that does nothing here is named, by serve in its log, too", async () => {
    const cwd = makeTempFolder("doctor");
    mkdirSync(join(cwd, "config"));
    const env = { RUNTIME_ROOT: cwd, REDIS_PERSECOND: "true", REDIS_SOCKET_TYPE: "tcp", CACHE_KEY_PREFIX: "shop:" };
    const { stdout } = await runSluice(["doctor", ...free, "--host", "127.0.0.1"], { cwd, env });
    expect(stdout).toMatch(
      /^warning +settings +the variable REDIS_PERSECOND is ignored\n +-> unset it: limits per second/m,
    );
    expect(stdout.match(/is ignored/g)).toHaveLength(1);
    // It ends by itself: the data folder cannot be made.
    const folder = ["--data-folder", "/dev/null/x"];
    const served = await runSluice(["serve", ...free, ...folder], { cwd, env });
    expect(served.status).toBe(2);
    expect(served.stderr).toMatch(/"level":40.*the variable REDIS_PERSECOND is ignored: limits per second are counted/);
  });

  describe.skipIf(whyMissing("redis"))("on a Redis", () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis({ args: ["--maxmemory", "64mb"] });
    });
    afterAll(() => redis.stop());

    test("that is well: it decides, rights are there, clocks agree, and no key is left", async () => {
      const { status, stdout } = await doctor("--store", redis.url);
      for (const check of ["store", "store rights", "store role", "store memory", "clocks"]) {
        expect(stdout).toMatch(new RegExp(`^ok +${check} `, "m"));
      }
      expect(status).toBe(0);
      // A reset leaves a note for other instances, which ends by itself; nothing else stays.
      const left = (await redis.cli("KEYS", "*")).split("\n").filter((key) => key !== "");
      for (const key of left) expect(Number(await redis.cli("PTTL", key)), key).toBeGreaterThan(0);
      expect(left.filter((key) => key.includes("probe"))).toEqual([]);
    });

    test("with a wrong password: says so, and never the password", async () => {
      await redis.cli("ACL", "SETUSER", "limited", "on", ">right-password", "~*", "&*", "+@all");
      const { status, stdout, stderr } = await doctor("--store", redis.url.replace("//", "//limited:wrong-password@"));
      expect(status).toBe(1);
      expect(stdout).toMatch(
        /^failed +store +.*WRONGPASS.*\n +-> check the user and the password in the store's URL$/m,
      );
      expect(stdout + stderr).not.toContain("wrong-password");
    });

    test("whose user may decide and no more: names the commands that are missing", async () => {
      const library =
        "+evalsha +eval +script|load +info +ping +time +get +set +del +exists +getrange +setrange +pttl +pexpire +pexpireat +pexpiretime +zadd +zrem +zcard +zcount +zscore +zrevrange +zrangebyscore +zremrangebyscore +zremrangebyrank";
      await redis.cli("ACL", "SETUSER", "library", "on", ">p", "~sluice:1:*", "resetchannels", ...library.split(" "));
      const { status, stdout } = await doctor("--store", redis.url.replace("//", "//library:p@"));
      expect(stdout).toMatch(/^ok +store +decides$/m);
      expect(stdout).toMatch(/^warning +store rights +the Redis user may not .*\+scan .*\+memory\|usage/m);
      expect(status).toBe(0);
    });

    test("that is a replica, or full, or evicts: failed, failed, warned", async () => {
      const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", String(redis.port)] });
      const onReplica = await doctor("--store", replica.url);
      expect(onReplica.status).toBe(1);
      expect(onReplica.stdout).toMatch(
        /^failed +store role +a replica of 127\.0\.0\.1:\d+\n +-> give the leader's address/m,
      );
      await replica.stop();

      await redis.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
      expect((await doctor("--store", redis.url)).stdout).toMatch(/^warning +store memory .*\n +-> .*noeviction/m);
      await redis.cli("CONFIG", "SET", "maxmemory-policy", "noeviction");
      await redis.cli("CONFIG", "SET", "maxmemory", "1");
      const full = await doctor("--store", redis.url);
      expect(full.status).toBe(1);
      expect(full.stdout).toMatch(/^failed +store +.*OOM/m);
      expect(full.stdout).toMatch(/^failed +store memory .*\n +-> raise maxmemory/m);
    });

    test("that is not there: fails within seconds and names what to look at", async () => {
      const { status, stdout } = await doctor("--store", "redis://127.0.0.1:1");
      expect(status).toBe(1);
      expect(stdout).toMatch(/^failed +store +.*\n +-> check the address/m);
    });
  });
});
