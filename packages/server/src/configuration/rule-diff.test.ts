/** A difference names what changed, and only that. */
import type { Rule } from "sluice";
import { TimeSlice } from "sluice/internal";
import { expect, test } from "vitest";
import { diffText } from "./diff-text.js";
import { diffRules, isEmpty } from "./rule-diff.js";

const rule = (id: string, more: object = {}) =>
  ({ id, key: ["user"], algorithm: "fixed-window", limit: 1, window: "1m", ...more }) as Rule;
const diff = (from: Rule[], to: Rule[]) => diffRules(from, to, new TimeSlice());
const override = (user: string, limit: number) => ({ match: { user }, limit });

test("equal lists have no difference, whatever the order of fields", async () => {
  const { id, ...rest } = rule("a", { match: { path: "/x", method: ["GET"] } });
  const found = await diff([rule("a", { match: { method: ["GET"], path: "/x" } })], [{ ...rest, id } as Rule]);
  expect(isEmpty(found)).toBe(true);
  expect(diffText(found)).toBe("no difference");
});

test("added, removed and changed rules are told by field", async () => {
  const from = [rule("a"), rule("b", { match: { path: "/x" }, description: "old" })];
  const to = [rule("b", { match: { path: "/y", method: "GET" }, limit: 5 }), rule("c")];
  expect(diffText(await diff(from, to))).toBe(
    [
      "~ b",
      "    limit: 1 -> 5",
      '    match.path: "/x" -> "/y"',
      '    match.method: (absent) -> "GET"',
      '    description: "old" -> (absent)',
      "+ c",
      "- a",
      "1 added, 1 removed, 1 changed",
    ].join("\n"),
  );
});

test("another order of the rules is a difference of its own", async () => {
  const found = await diff([rule("a"), rule("b")], [rule("b"), rule("a")]);
  expect(found).toMatchObject({ changed: 0, reordered: true });
  expect(isEmpty(found)).toBe(false);
});

test("an override that is put in front does not change those behind it", async () => {
  const from = [rule("a", { overrides: [override("x", 1), override("y", 2)] })];
  const to = [rule("a", { overrides: [override("w", 9), override("x", 1), override("y", 3)] })];
  expect((await diff(from, to)).changes[0]!.fields).toEqual([
    { path: 'overrides[{"user":"w"}]', to: override("w", 9) },
    { path: 'overrides[{"user":"y"}].limit', from: 2, to: 3 },
  ]);
});

test("an override that goes, and one that changes its place, are told", async () => {
  const three = ["x", "y", "z"].map((user) => override(user, 1));
  const gone = await diff([rule("a", { overrides: three })], [rule("a", { overrides: three.slice(1) })]);
  expect(gone.changes[0]!.fields).toEqual([{ path: 'overrides[{"user":"x"}]', from: override("x", 1) }]);
  const turned = await diff([rule("a", { overrides: three })], [rule("a", { overrides: three.toReversed() })]);
  expect(turned.changes[0]!.fields).toMatchObject([{ path: "overrides", to: "reordered" }]);
});

test("a difference of very many rules and fields stays short, and its counts are complete", async () => {
  const many = (limit: number) => Array.from({ length: 5_000 }, (_, i) => rule(`r${i}`, { limit }));
  const found = await diff(many(1), many(2));
  expect(found.changed).toBe(5_000);
  expect(found.changes).toHaveLength(1_000);
  expect(diffText(found)).toContain("... and 4000 more rules");
  const wide = (limit: number) => [
    rule("a", { overrides: Array.from({ length: 5_000 }, (_, i) => override(`u${i}`, limit)) }),
  ];
  const [change] = (await diff(wide(1), wide(2))).changes;
  expect(change).toMatchObject({ more: 4_950 });
  expect(change!.fields).toHaveLength(50);
});
