/** `--rules FILE`: read-only, read again when it changes, and a bad edit keeps the old rules. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { FileConfiguration } from "../../packages/server/src/configuration/file-configuration.js";
import { writeRuleFile } from "../../packages/server/src/configuration/rule-file.js";
import { makeTempFolder } from "../harness/leash.js";
import { eventually, type Instance, perUser, startInstance } from "./instance.js";

const running: Instance[] = [];
afterEach(() => Promise.all(running.splice(0).map((instance) => instance.stop())));

const yaml = (limit: number) => writeRuleFile([perUser(limit)]);

async function start(rulesFile: string, more: { dataFolder?: string; pollMs?: number } = {}): Promise<Instance> {
  const instance = await startInstance({ rulesFile, pollMs: 10_000, ...more });
  running.push(instance);
  return instance;
}

const limitOf = (instance: Instance) => instance.limiter.rules[0]?.limit;

describe("rules from a file", () => {
  test("are read again when the file is written, replaced by another, or swapped behind a link", async () => {
    const folder = makeTempFolder("rules");
    const file = join(folder, "rules.yaml");
    writeFileSync(file, yaml(1));
    const instance = await start(file);
    expect(instance.configuration.status()).toEqual({
      version: 1,
      loaded: true,
      source: "file",
      database: "none",
      cache: "none",
    });

    writeFileSync(file, yaml(2));
    await eventually("written", () => limitOf(instance) === 2);
    writeFileSync(`${file}.new`, yaml(3));
    renameSync(`${file}.new`, file);
    await eventually("replaced", () => limitOf(instance) === 3);
    expect(instance.limiter.rulesVersion).toBe(3);

    // As Kubernetes does it.
    for (const version of ["v1", "v2"]) mkdirSync(join(folder, version));
    writeFileSync(join(folder, "v1", "rules.yaml"), yaml(4));
    writeFileSync(join(folder, "v2", "rules.yaml"), yaml(5));
    symlinkSync("v1", join(folder, "current"));
    rmSync(file);
    symlinkSync(join("current", "rules.yaml"), file);
    await eventually("linked", () => limitOf(instance) === 4);
    symlinkSync("v2", join(folder, "next"));
    renameSync(join(folder, "next"), join(folder, "current"));
    await eventually("swapped", () => limitOf(instance) === 5);
  });

  test("that are written while the service starts, after it has read the file, are read too", async () => {
    const dataFolder = makeTempFolder("rules");
    const file = join(dataFolder, "rules.yaml");
    writeFileSync(file, yaml(1));
    const nothing = () => undefined;
    let isEdited = false;
    const configuration = await FileConfiguration.start(
      {
        dataFolder,
        pollMs: 10_000,
        log: {
          info: () => {
            if (!isEdited) writeFileSync(file, yaml(2));
            isEdited = true;
          },
          warn: nothing,
          error: nothing,
        },
      },
      file,
    );
    await eventually("read again", () => configuration.current.rules[0]?.limit === 2);
    await configuration.close();
  });

  test("are found by looking now and then where watching the folder tells nothing", async () => {
    const folder = makeTempFolder("rules");
    mkdirSync(join(folder, "elsewhere"));
    writeFileSync(join(folder, "elsewhere", "rules.yaml"), yaml(1));
    symlinkSync(join("elsewhere", "rules.yaml"), join(folder, "rules.yaml"));
    const instance = await start(join(folder, "rules.yaml"), { pollMs: 50 });
    // The folder of the link sees nothing of this.
    writeFileSync(join(folder, "elsewhere", "rules.yaml"), yaml(22));
    await eventually("found", () => limitOf(instance) === 22);
  });

  const badEdits = [
    { name: "malformed YAML", text: "rules:\n  - id: [", says: /rules\.yaml:\d+:\d+: document: / },
    {
      name: "an unknown field",
      text: `${yaml(2)}    limt: 5\n`,
      says: /rules\.yaml:\d+:\d+: rules\[0\]\.limt: unknown field, did you mean "limit"/,
    },
    { name: "an empty file", text: "", says: /expected an object/ },
    {
      name: "aliases of aliases",
      text: `a: &a [${"x,".repeat(50)}]\nb: &b [${"*a,".repeat(50)}]\nrules: [${"*b,".repeat(50)}]\n`,
      says: /aliases/,
    },
    { name: "ten megabytes", text: `#${"x".repeat(10 * 1024 * 1024)}\nrules: []`, says: /expected at most/ },
  ];
  test.each(badEdits)(
    "$name keeps the old rules, is told with its place, and a good edit mends it",
    async ({ text, says }) => {
      const file = join(makeTempFolder("rules"), "rules.yaml");
      writeFileSync(file, yaml(1));
      const instance = await start(file);
      writeFileSync(file, text);
      await eventually("it is told", () => says.test(instance.configuration.status().lastError ?? ""));
      expect(limitOf(instance)).toBe(1);
      expect(instance.said.at(-1)).toMatch(/^error: the rules file was refused, the old rules stay in force/);
      writeFileSync(file, yaml(3));
      await eventually("mended", () => limitOf(instance) === 3);
      expect(instance.configuration.status().lastError).toBeUndefined();
    },
  );

  test("a file that goes away keeps the rules", async () => {
    const file = join(makeTempFolder("rules"), "rules.yaml");
    writeFileSync(file, yaml(1));
    const instance = await start(file);
    rmSync(file);
    await eventually("it is told", () => /ENOENT/.test(instance.configuration.status().lastError ?? ""));
    expect(limitOf(instance)).toBe(1);
  });

  test("a start with a bad file uses the last good one of the same path, or else does not start", async () => {
    const file = join(makeTempFolder("rules"), "rules.yaml");
    writeFileSync(file, "rules: 5\n");
    await expect(startInstance({ rulesFile: file })).rejects.toThrow(
      /rules\.yaml:1:1: rules: expected a list of rules/,
    );
    writeFileSync(file, yaml(7));
    const good = await start(file);
    const { dataFolder } = good;
    writeFileSync(file, "rules: 5\n");
    const again = await start(file, { dataFolder });
    expect(limitOf(again)).toBe(7);
    expect(again.configuration.status()).toMatchObject({ source: "snapshot", version: 1 });
    writeFileSync(file, yaml(8));
    await eventually("mended", () => limitOf(again) === 8);
    expect(again.configuration.status()).toMatchObject({ source: "file", version: 2 });
  });

  test("versions go on over a restart: the same text is the same version, another is the next", async () => {
    const file = join(makeTempFolder("rules"), "rules.yaml");
    writeFileSync(file, yaml(1));
    const first = await start(file);
    writeFileSync(file, yaml(2));
    await eventually("read", () => first.limiter.rulesVersion === 2);
    await Promise.all(running.splice(0).map((instance) => instance.stop()));
    const { dataFolder } = first;
    const same = await start(file, { dataFolder });
    expect(same.limiter.rulesVersion).toBe(2);
    await Promise.all(running.splice(0).map((instance) => instance.stop()));
    writeFileSync(file, yaml(3));
    expect((await start(file, { dataFolder })).limiter.rulesVersion).toBe(3);
  });

  test("the admin API shows them and refuses to change them", async () => {
    const file = join(makeTempFolder("rules"), "rules.yaml");
    writeFileSync(file, yaml(1));
    const instance = await start(file);
    expect((await instance.call("GET", "/rules")).body).toEqual({ version: 1, rules: [perUser(1)] });
    const refused = [
      await instance.call("PUT", "/rules", { body: [perUser(2)] }),
      await instance.call("DELETE", "/rules/per-user"),
      await instance.call("GET", "/versions"),
      await instance.call("GET", "/audit"),
      await instance.call("POST", "/tokens", { body: { name: "x", role: "viewer" } }),
    ];
    for (const { status, body } of refused)
      expect({ status, code: body.code }).toEqual({ status: 409, code: "rules-from-file" });
    const reset = await instance.call("POST", "/keys/reset", { body: { rule: "per-user", attributes: { user: "a" } } });
    expect(reset.status).toBe(200);
  });
});
