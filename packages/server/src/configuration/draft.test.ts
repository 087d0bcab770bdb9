/** The two forms of a draft tell the same, and a prepared one is compared again where its comparison is out of date. */
import type { Rule } from "sluice";
import { TimeSlice } from "sluice/internal";
import { describe, expect, test } from "vitest";
import { digestOf, documentOf, writeDocument } from "./document-text.js";
import { type Draft, draftOf, PreparedDocument, readValidated } from "./draft.js";
import { diffRules, type RuleDiff } from "./rule-diff.js";

const rule = (id: string, limit: number, more: object = {}): Rule =>
  ({ id, key: ["user"], algorithm: "fixed-window", limit, window: "1m", ...more }) as Rule;
const base = [rule("a", 1), rule("b", 2)];
const proposed = [rule("a", 7), rule("c", 3)];

/** As the worker thread leaves it. `diff` may be one that `diffRules` would not give, to see that it is not used. */
async function prepare(rules: readonly Rule[], given: { base: readonly Rule[]; diff?: RuleDiff }): Promise<Draft> {
  const text = await writeDocument(rules, new TimeSlice());
  return new PreparedDocument({
    document: new TextEncoder().encode(text),
    digest: digestOf(text),
    needsGlobalStore: rules.some(({ scope }) => scope === "global"),
    diff: await diffRules(given.base, rules, new TimeSlice()),
    ...given,
  });
}

describe.each([
  ["edited", (rules: readonly Rule[]) => draftOf({ rules })],
  ["prepared", async (rules: readonly Rule[]) => await draftOf(await prepare(rules, { base }))],
])("%s", (_form, make) => {
  test("has the rules, their text with its digest, and the difference", async () => {
    const draft = await make(proposed);
    expect(await draft.rules()).toEqual(proposed);
    const document = await writeDocument(proposed, new TimeSlice());
    expect(await draft.text()).toEqual({ document, digest: digestOf(document) });
    expect(await draft.diffFrom(base)).toEqual(await diffRules(base, proposed, new TimeSlice()));
  });

  test("knows whether it needs a global store", async () => {
    expect((await make(proposed)).needsGlobalStore).toBe(false);
    expect((await make([...proposed, rule("d", 1, { scope: "global" })])).needsGlobalStore).toBe(true);
  });
});

test("the difference that the thread found is used for the rules that it compared with, and for no others", async () => {
  const wrong: RuleDiff = { added: ["never"], removed: [], changes: [] } as unknown as RuleDiff;
  const draft = await prepare(proposed, { base, diff: wrong });
  expect(await draft.diffFrom(base)).toBe(wrong);
  const newer = [...base, rule("c", 3)];
  expect(await draft.diffFrom(newer)).toEqual(await diffRules(newer, proposed, new TimeSlice()));
});

test("a draft with mistakes is refused, and the version of a body comes back as it was", async () => {
  await expect(draftOf({ rules: [rule("a", -1)] })).rejects.toMatchObject({ code: "invalid-rules" });
  const version = ["no", "number"];
  const prepared = new PreparedDocument({
    ...{ document: new Uint8Array(), digest: "", needsGlobalStore: false, base, version },
    diff: await diffRules([], [], new TimeSlice()),
  });
  expect(prepared.version).toBe(version);
});

test("the document of rules that were read is not written again", async () => {
  const document = Buffer.from(await writeDocument(proposed, new TimeSlice()));
  const rules = await readValidated(document);
  expect(rules).toEqual(proposed);
  expect((await documentOf(rules)).buffer).toBe(document.buffer);
});
