/** Editors at once, through several instances on one database: guarded edits, plain ones, imports, rollbacks and removals. */
import type { CountingRule } from "sluice";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { startPostgres } from "../harness/postgres.js";
import { eventually, type Instance, perUser, type Reply, startInstance } from "./instance.js";

const INSTANCES = 3;
const EDITORS = 8;
const EDITS_EACH = 12;

/** A change that was answered with 200 and made a version. */
interface Made {
  readonly version: number;
  readonly kind: "increment" | "add" | "remove" | "rollback";
  /** The version that was rolled back to. */
  readonly to?: number;
}

type Rules = readonly CountingRule[];

const limitIn = (rules: Rules): number => rules.find(({ id }) => id === "per-user")!.limit;

/** One edit, chosen by `n`. */
async function edit(
  { call }: Instance,
  editor: number,
  n: number,
): Promise<{ reply: Reply; made: Omit<Made, "version"> }> {
  const id = `of-${editor}-${n % 2}`;
  if (n % 6 < 2) {
    const { body, headers } = await call("GET", "/rules/per-user");
    const guard = { "if-match": String(headers.etag) };
    const rule = body as unknown as CountingRule;
    const reply = await call("PUT", "/rules/per-user", { body: { ...rule, limit: rule.limit + 1 }, headers: guard });
    return { reply, made: { kind: "increment" } };
  }
  if (n % 6 === 2) {
    const { body } = await call("GET", "/rules");
    const rules = (body.rules as Rules).map((rule) =>
      rule.id === "per-user" ? { ...rule, limit: rule.limit + 1 } : rule,
    );
    return { reply: await call("PUT", "/rules", { body: { ...body, rules } }), made: { kind: "increment" } };
  }
  if (n % 6 === 5) return { reply: await call("DELETE", `/rules/${id}`), made: { kind: "remove" } };
  if (n % 12 === 10) {
    const { body } = await call("GET", "/versions");
    const to = body.versions.at(-1)!.version;
    return { reply: await call("POST", `/versions/${to}/rollback`), made: { kind: "rollback", to } };
  }
  const reply = await call("PUT", `/rules/${id}`, { body: { ...perUser(1 + n), id } });
  return { reply, made: { kind: "add" } };
}

async function editAll(instances: readonly Instance[]): Promise<Made[]> {
  const made: Made[] = [];
  const editors = Array.from({ length: EDITORS }, async (_, editor) => {
    for (let n = 0; n < EDITS_EACH; n++) {
      const { reply, made: one } = await edit(instances[(editor + n) % INSTANCES]!, editor, n + editor);
      // Another editor was faster (412; 409 through other instances), or its rule is gone (404).
      expect([200, 404, 409, 412]).toContain(reply.status);
      if (reply.status === 200 && (reply.body as { changed?: boolean }).changed)
        made.push({ version: reply.body.version, ...one });
    }
  });
  await Promise.all(editors);
  return made.sort((a, b) => a.version - b.version);
}

async function noUpdateIsLost(database: string): Promise<void> {
  const instances: Instance[] = [];
  for (let i = 0; i < INSTANCES; i++) instances.push(await startInstance({ database, starterRules: [perUser(1_000)] }));
  const made = await editAll(instances);
  // Each change that was answered is one version, and there are no others but the first.
  expect(made.map(({ version }) => version)).toEqual(made.map((_, i) => i + 2));
  const { call } = instances[0]!;
  const documents: Rules[] = [];
  for (let version = 1; version <= made.length + 1; version++)
    documents[version] = (await call("GET", `/versions/${version}`)).body.rules as Rules;
  for (const { version, kind, to } of made) {
    const [before, after] = [documents[version - 1]!, documents[version]!];
    if (kind === "rollback") expect(after).toEqual(documents[to!]);
    else expect(limitIn(after)).toBe(limitIn(before) + (kind === "increment" ? 1 : 0));
    if (kind === "add" || kind === "remove") expect(Math.abs(after.length - before.length)).toBeLessThanOrEqual(1);
  }
  const { entries } = (await call("GET", "/audit?limit=200")).body;
  const audited = entries.map((entry) => (entry as unknown as { details: { version: number } }).details.version);
  expect(audited).toEqual(
    documents
      .map((_, version) => version)
      .slice(1)
      .reverse(),
  );
  await eventually("the last version is in force on all", () =>
    instances.every((one) => one.configuration.current.version === made.length + 1),
  );
  for (const instance of instances) await instance.stop();
}

describe("of editors through three instances every answered change is kept, in the order of versions and of the audit", () => {
  test("with SQLite", async () => {
    await noUpdateIsLost(`sqlite:${makeTempFolder("editors")}/rules.db`);
  });

  test.skipIf(whyMissing("postgresql"))("with PostgreSQL", async () => {
    await using postgres = await startPostgres();
    await noUpdateIsLost(postgres.createDatabase("rules"));
  });
});
