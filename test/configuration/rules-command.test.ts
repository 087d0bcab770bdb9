/** `sluice rules` as it is typed: the built command in processes of its own, against an instance of this process. */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeTempFolder } from "../harness/leash.js";
import { ADMIN_TOKEN, type Instance, perUser, startInstance } from "./instance.js";

const program = fileURLToPath(new URL("../../packages/server/bin/sluice.js", import.meta.url));
const folder = makeTempFolder("cli");
let instance: Instance;
let server: string;

beforeAll(async () => {
  instance = await startInstance();
  server = await instance.app.listen({ port: 0, host: "127.0.0.1" });
});
afterAll(() => instance.stop());
beforeEach(async () => {
  await instance.call("PUT", "/rules", { body: [perUser(100, { candidate: { limit: 50 } })] });
});

interface Ended {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs `sluice rules ...` in a folder without a token file. */
function sluice(
  args: readonly string[],
  { input = "", env = {} }: { input?: string; env?: Record<string, string> } = {},
) {
  return new Promise<Ended>((resolve) => {
    const settings = { SLUICE_SERVER: server, SLUICE_ADMIN_TOKEN: ADMIN_TOKEN, ...env };
    const child = spawn(process.execPath, [program, "rules", ...args], {
      cwd: folder,
      env: { ...process.env, ...settings },
    });
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk) => (out += chunk));
    child.stderr.on("data", (chunk) => (err += chunk));
    child.on("close", (status) => resolve({ status, out, err }));
    child.stdin.end(input);
  });
}

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return name;
}

const good = `rules:
  - id: per-user
    key: [user]
    algorithm: fixed-window
    limit: 200
    window: 1h
`;

describe("lint", () => {
  test("prints file, line and column of each mistake with the nearest field name, and exits 1", async () => {
    const file = write("bad.yaml", `${good.replace("limit: 200", "limt: 200")}\n  - id: UPPER\n`);
    const { status, out } = await sluice(["lint", file]);
    expect(status).toBe(1);
    const lines = out.trim().split("\n");
    expect(lines).toContain('bad.yaml:5:5: rules[0].limt: unknown field, did you mean "limit"?');
    expect(lines.some((line) => line.startsWith("bad.yaml:8:5: rules[1].id: expected "))).toBe(true);
  });

  test("needs no server, reads standard input, and says how many rules are well", async () => {
    const env = { SLUICE_SERVER: "http://127.0.0.1:1" };
    expect(await sluice(["lint", "-"], { input: good, env })).toMatchObject({
      status: 0,
      out: "-: 1 rule, no mistakes\n",
    });
    const { status, out } = await sluice(["lint", "--json", "-"], { input: "rules: [{}]", env });
    expect(status).toBe(1);
    expect(JSON.parse(out).mistakes[0]).toMatchObject({ file: "-", path: "rules[0].id", line: 1, column: 9 });
  });

  test("a missing file or argument is misuse", async () => {
    expect(await sluice(["lint", "nowhere.yaml"])).toMatchObject({
      status: 2,
      err: expect.stringContaining("no such file"),
    });
    expect((await sluice(["lint"])).status).toBe(2);
    expect((await sluice(["lint", "--nonsense"])).status).toBe(2);
    expect((await sluice(["rollback", "seven"])).status).toBe(2);
  });
});

describe("diff and apply", () => {
  test("diff tells what a file would change on the server, and between two files without one", async () => {
    const file = write("rules.yaml", good);
    const text = '~ per-user\n    limit: 100 -> 200\n    candidate: {"limit":50} -> (absent)\n1 changed\n';
    expect(await sluice(["diff", file])).toEqual({ status: 0, out: text, err: "" });
    expect((await sluice(["diff", "--exit-code", file])).status).toBe(1);
    const other = write("other.yaml", good.replace("200", "300"));
    const offline = await sluice(["diff", "--json", file, other], { env: { SLUICE_SERVER: "http://127.0.0.1:1" } });
    expect(JSON.parse(offline.out)).toMatchObject({
      changed: 1,
      changes: [{ fields: [{ path: "limit", from: 200, to: 300 }] }],
    });
  });

  test("apply puts a file in force, with its message; again, it changes nothing", async () => {
    const file = write("rules.yaml", good);
    const dry = await sluice(["apply", "--dry-run", file]);
    expect(dry).toMatchObject({ status: 0, out: expect.stringContaining("a dry run") });
    expect(instance.limiter.rules[0]?.limit).toBe(100);
    const applied = await sluice(["apply", file, "-m", "double it"]);
    expect(applied).toMatchObject({
      status: 0,
      out: expect.stringMatching(/limit: 100 -> 200[\s\S]*version \d+ is in force\n$/),
    });
    expect(instance.limiter.rules).toEqual([perUser(200)]);
    expect((await sluice(["apply", file])).out).toMatch(/^no difference\nversion \d+ stays in force\n$/);
    expect((await sluice(["history", "--limit", "1"])).out).toMatch(/admin +1 changed +double it\n$/);
  });

  test("what others wrote cannot drive the terminal", async () => {
    const message = "\u001b[2Jall well\u009b31m\u202e";
    await instance.call("PUT", `/rules?message=${encodeURIComponent(message)}`, { body: [perUser(300)] });
    const { out } = await sluice(["history", "--limit", "1"]);
    expect(out).toContain("·[2Jall well·31m·");
    expect(out).not.toMatch(/(?!\n)\p{Cc}|\p{Cf}/u);
    const json = (await sluice(["history", "--limit", "1", "--json"])).out;
    expect(json).not.toMatch(/(?!\n)\p{Cc}|\p{Cf}/u);
    expect(JSON.parse(json).versions[0].message).toBe(message);
  });

  test("rules, files and refusals that others wrote cannot drive the terminal either", async () => {
    const hostile = "\u001b[2J\u009b31m\u202e\u2066\u200f\u2028\u007f\u{e0041} end";
    const rule = { ...perUser(300), description: hostile, match: { path: hostile } };
    await instance.call("PUT", "/rules", { body: [rule] });
    const exported = (await sluice(["export"])).out;
    const bad = write("hostile.yaml", exported.replace("limit: 300", `"lim${"\\u009b\\u202e"}it": 300`));
    const outputs = await Promise.all([
      sluice(["show", "per-user"]),
      sluice(["show", "per-user", "--json"]),
      sluice(["export", "--json"]),
      sluice(["diff", write("good.yaml", good)]),
      sluice(["lint", bad]),
      sluice(["apply", bad]),
      sluice(["list", "--server", `${server}/?\u009b`]),
    ]);
    for (const { out, err } of [{ out: exported, err: "" }, ...outputs]) {
      expect(out + err).not.toMatch(/(?!\n)\p{Cc}|\p{Cf}|\p{Zl}/u);
    }
    // Escaped, not lost: what was exported is the same rule.
    await sluice(["apply", write("exported.yaml", exported)]);
    expect(instance.limiter.rules[0]).toMatchObject({ description: hostile, match: { path: hostile } });
  });

  test("apply of a file with mistakes tells them and changes nothing", async () => {
    const { version } = instance.configuration.current;
    const { status, err } = await sluice(["apply", write("bad.yaml", good.replace("1h", "soon"))]);
    expect(status).toBe(1);
    expect(err).toMatch(/^bad\.yaml:6:5: rules\[0\]\.window: expected a duration/);
    expect(instance.configuration.current.version).toBe(version);
  });

  test("apply of a version that has been overtaken tells what changed meanwhile", async () => {
    const { version } = instance.configuration.current;
    await instance.call("PUT", "/rules/per-user", { body: perUser(1) });
    const { status, err } = await sluice(["apply", write("rules.yaml", good), "--if-match", String(version)]);
    expect(status).toBe(1);
    expect(err).toContain("version-mismatch");
    expect(err).toContain("limit: 100 -> 1");
    await sluice(["rollback", String(version)]);
    const changedBack = await sluice(["apply", write("rules.yaml", good), "--if-match", String(version)]);
    const { version: newest } = instance.configuration.current;
    expect(changedBack.err).toContain(`was changed back: --if-match ${newest} names the same rules`);
    await instance.call("PUT", "/rules/per-user", { body: perUser(1) });
  });
});

describe("reading and going back", () => {
  test("list, show, history and export answer in text and in JSON", async () => {
    const list = await sluice(["list"]);
    expect(list.out).toMatch(
      /^rule +mode +algorithm +limit +per +counted by +overrides\nper-user +enforce +fixed-window +100 +1h +user +0\nversion \d+\n$/,
    );
    expect(JSON.parse((await sluice(["list", "--json"])).out).rules).toEqual([
      perUser(100, { candidate: { limit: 50 } }),
    ]);
    expect((await sluice(["show", "per-user"])).out).toMatch(/^rules:\n {2}- id: per-user\n {4}key: \[user\]\n/);
    expect(JSON.parse((await sluice(["show", "per-user", "--json"])).out).id).toBe("per-user");
    expect(JSON.parse((await sluice(["history", "--json"])).out).versions.length).toBeGreaterThan(1);
    expect(await sluice(["show", "none"])).toMatchObject({ status: 1, err: expect.stringContaining("unknown-rule") });
  });

  test("what export writes is applied again without a difference, byte for byte the same", async () => {
    await sluice(["export", "-o", "out.yaml"]);
    const text = readFileSync(join(folder, "out.yaml"), "utf8");
    expect((await sluice(["export"])).out).toBe(text);
    expect((await sluice(["apply", "out.yaml"])).out).toMatch(/^no difference/);
  });

  test("promote and rollback make versions", async () => {
    const { version } = instance.configuration.current;
    expect((await sluice(["promote", "per-user"])).status).toBe(0);
    expect(instance.limiter.rules).toEqual([perUser(50)]);
    expect((await sluice(["rollback", String(version)])).out).toMatch(/limit: 50 -> 100/);
    expect(instance.limiter.rules).toEqual([perUser(100, { candidate: { limit: 50 } })]);
    const old = await sluice(["export", "--rules-version", String(version + 1)]);
    expect(old.out).toContain("limit: 50\n");
  });
});

describe("access", () => {
  test("a wrong token, no server and a server of another kind are told in a line, with status 1", async () => {
    expect(await sluice(["list", "--token", "wrong-token-of-some-length"])).toMatchObject({
      status: 1,
      err: expect.stringContaining("unauthorized"),
    });
    const nobody = await sluice(["list", "--server", "http://127.0.0.1:1"]);
    expect(nobody).toMatchObject({ status: 1 });
    expect(nobody.err.split("\n")).toHaveLength(2);
    expect((await sluice(["list", "--server", "not a url"])).status).toBe(2);
  });

  test("without a token in sight the server's own words say what is missing", async () => {
    const { status, err } = await sluice(["list"], { env: { SLUICE_ADMIN_TOKEN: "" } });
    expect(status).toBe(1);
    expect(err).toContain("expected Bearer and an admin token");
  });

  test("colour appears only where it is wanted", async () => {
    const file = write("rules.yaml", good);
    const plain = await sluice(["diff", file]);
    expect(plain.out).not.toContain("\u001b[");
    expect((await sluice(["diff", file], { env: { FORCE_COLOR: "1" } })).out).toContain("\u001b[33m~ per-user");
    expect((await sluice(["diff", file], { env: { FORCE_COLOR: "1", NO_COLOR: "1" } })).out).not.toContain("\u001b[");
  });
});
