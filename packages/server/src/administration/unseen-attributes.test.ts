import type { Rule } from "sluice";
import { expect, test } from "vitest";
import { unseenAttributes } from "./unseen-attributes.js";

const rule: Rule = {
  id: "a",
  key: ["user", "tennant"],
  match: { region: "eu", path: "/v1/**" },
  algorithm: "rolling-window",
  limit: 1,
  window: "1s",
};
const seen = (...names: string[]) => ({ names: new Set(names), isComplete: true });

test("each attribute in key and match that no request had is reported at its path", () => {
  const warnings = unseenAttributes(rule, seen("user", "path", "tenant"));
  expect(warnings.map(({ path }) => path)).toEqual(["key[1]", "match.region"]);
  expect(warnings[0]!.message).toContain('"tennant"');
  expect(warnings[0]!.message).toContain("requests had path, tenant, user");
});

test("a region added by the service itself is known", () => {
  expect(unseenAttributes(rule, seen("user", "path", "tennant"), "eu")).toEqual([]);
});

test("there is no warning if it is uncertain: no traffic, or too many names", () => {
  expect(unseenAttributes(rule, seen())).toEqual([]);
  expect(unseenAttributes(rule, { names: new Set(["user"]), isComplete: false })).toEqual([]);
});

test("names chosen by clients are repeated only if they are plain, and at most twelve of them", () => {
  const names = [...Array.from({ length: 20 }, (_, i) => `h${String(i).padStart(2, "0")}`), "\u001b[31m", "<b>"];
  const [warning] = unseenAttributes({ ...rule, key: ["x"], match: {} }, seen(...names));
  expect(warning!.message).toContain("h11 and others");
  expect(warning!.message).not.toMatch(/h12|\p{Cc}|<b>/u);
});

test("a path used as a key gets a hint, and there are at most ten warnings", () => {
  const [hinted] = unseenAttributes({ ...rule, key: ["/v1/*"], match: {} }, seen("user"));
  expect(hinted!.message).toContain('put it under match: path: "/v1/*"');
  const many = { ...rule, key: Array.from({ length: 30 }, (_, i) => `k${i}`), match: {} };
  expect(unseenAttributes(many, seen("user"))).toHaveLength(10);
});
