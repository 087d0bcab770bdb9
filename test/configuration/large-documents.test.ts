/** Documents that a worker thread validates and compares are changed, guarded and refused as small ones are. */
import type { CountingRule, Rule } from "sluice";
import { SluiceError } from "sluice";
import { describe, expect, test } from "vitest";
import { diffRules } from "../../packages/server/src/configuration/rule-diff.js";
import { TimeSlice } from "../../packages/sluice/src/time-slices.js";
import { type Instance, perUser, startInstance } from "./instance.js";

/** Some 90 bytes each: a thousand are above the 64 KiB from where the thread takes over. */
const many = (limit: number, count = 1_000): CountingRule[] =>
  Array.from({ length: count }, (_, i) => ({ ...perUser(limit), id: `rule-${i}`, match: { path: `/${i}` } }));

async function withInstance<T>(
  options: Parameters<typeof startInstance>[0],
  use: (instance: Instance) => Promise<T>,
): Promise<T> {
  const instance = await startInstance(options);
  try {
    return await use(instance);
  } finally {
    await instance.stop();
  }
}

describe("a large document", () => {
  test("a dry run tells the difference and changes nothing; the change itself is in force and stored", async () => {
    await withInstance({ starterRules: [perUser(1)] }, async ({ call, configuration, limiter }) => {
      expect((await call("PUT", "/rules", { body: many(5) })).body.version).toBe(2);
      const wanted = many(5);
      wanted[3] = { ...wanted[3]!, limit: 6 };
      wanted.pop();
      const tried = await call("PUT", "/rules?dryRun=true", { body: wanted });
      expect(tried).toMatchObject({
        status: 200,
        body: { version: 2, text: "~ rule-3\n    limit: 5 -> 6\n- rule-999\n1 removed, 1 changed" },
      });
      expect(configuration.current.version).toBe(2);
      const made = await call("PUT", "/rules", { body: wanted });
      expect(made.body).toMatchObject({ version: 3, diff: tried.body.diff });
      expect((await call("GET", "/rules")).body).toEqual({ version: 3, rules: wanted });
      expect(await limiter.peek({ user: "u", path: "/3" })).toMatchObject({ remaining: 6 });
      // The same once more is no change.
      expect((await call("PUT", "/rules", { body: wanted })).body).toMatchObject({ version: 3, text: "no difference" });
      const stored = await configuration.repository!.read(3);
      expect(JSON.parse(stored!.document)).toEqual({ rules: wanted });
    });
  });

  test.each([
    [1, 412, "version-mismatch"],
    ["2", 400, "invalid-request"],
    [null, 400, "invalid-request"],
    [2.5, 400, "invalid-request"],
  ])("its version guards the change: %j is refused with %s", async (version, status, code) => {
    await withInstance({ starterRules: [perUser(1)] }, async ({ call, configuration }) => {
      await call("PUT", "/rules", { body: many(5) });
      expect(await call("PUT", "/rules", { body: { version, rules: many(6) } })).toMatchObject({
        status,
        body: { code },
      });
      expect(configuration.current.version).toBe(2);
      expect((await call("PUT", "/rules", { body: { version: 2, rules: many(6) } })).body.version).toBe(3);
    });
  });

  test("rules with scope global are refused where there is no global store, in a dry run, too", async () => {
    const accept = (rules: readonly Rule[]): void => {
      const at = rules.findIndex(({ scope }) => scope === "global");
      if (at >= 0) throw new SluiceError("invalid-rules", `rules[${at}].scope`);
    };
    await withInstance({ starterRules: [perUser(1)], accept }, async ({ call, configuration }) => {
      const body = many(5);
      body[700] = { ...body[700]!, algorithm: "token-bucket", scope: "global" } as CountingRule;
      for (const query of ["", "?dryRun=true"])
        expect((await call("PUT", `/rules${query}`, { body })).body).toMatchObject({
          code: "invalid-rules",
          detail: expect.stringContaining("rules[700].scope"),
        });
      expect(configuration.current.version).toBe(1);
    });
  });

  test("beside faster changes of others, each version's difference is the one to the version before it", async () => {
    await withInstance({ starterRules: [perUser(1)] }, async ({ call, configuration }) => {
      await call("PUT", "/rules", { body: many(5) });
      const changes = Array.from({ length: 24 }, (_, i) =>
        i % 3 === 0
          ? call("PUT", "/rules", { body: many(10 + i) })
          : call("PUT", `/rules/rule-${i}`, { body: { ...many(100 + i, i + 1)[i] } }),
      );
      expect(new Set((await Promise.all(changes)).map(({ status }) => status))).toEqual(new Set([200]));
      const versions = configuration.current.version;
      expect(versions).toBe(2 + 24);
      const rulesOf = async (version: number): Promise<Rule[]> =>
        JSON.parse((await configuration.repository!.read(version))!.document).rules;
      for (let version = 2; version <= versions; version++) {
        const told = (await configuration.repository!.read(version))!.diff;
        expect(told).toEqual(await diffRules(await rulesOf(version - 1), await rulesOf(version), new TimeSlice()));
      }
    });
  });
});

test("a large stored document that somebody spoilt is not taken, and the next change is made to the last good rules", async () => {
  await withInstance({ starterRules: [perUser(1)] }, async ({ call, configuration }) => {
    await call("PUT", "/rules", { body: many(5) });
    const spoilt = many(5).map((rule, i) => (i === 900 ? { ...rule, limit: -1 } : rule));
    const document = JSON.stringify({ rules: spoilt });
    const head = (await configuration.repository!.head())!;
    await configuration.repository!.commit({
      ...{ base: head.version, author: "by hand", message: "", kind: "document" as const, document, digest: "spoilt" },
      diff: await diffRules([], [], new TimeSlice()),
    });
    expect((await call("PUT", "/rules/rule-3", { body: { ...many(8)[3] } })).status).toBe(200);
    expect(configuration.current.version).toBe(4);
    expect(configuration.current.rules).toEqual(many(5).map((rule, i) => (i === 3 ? { ...rule, limit: 8 } : rule)));
  });
});
