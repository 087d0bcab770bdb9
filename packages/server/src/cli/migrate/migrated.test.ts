import { expect, test } from "vitest";
import { attributeName, Migration, oneOrList } from "./migrated.js";

test("ids are valid and unique, whatever the names", () => {
  const migration = new Migration();
  for (const name of ["Per IP", "per-ip", "__x", "", "ü".repeat(99), "a".repeat(99)]) migration.add(name, { key: [] });
  const ids = migration.rules.map(({ id }) => id);
  expect(ids.slice(0, 4)).toEqual(["per-ip", "per-ip-2", "x", "rule"]);
  expect(new Set(ids).size).toBe(6);
  for (const id of ids) expect(id).toMatch(/^[a-z0-9][a-z0-9-_.]{0,63}$/);
});

test("rules share no objects, and a note appears once", () => {
  const migration = new Migration();
  const match = { host: ["a", "b"] };
  migration.add("a", { match });
  migration.add("b", { match });
  expect(migration.rules[0]!.match).toEqual(match);
  expect(migration.rules[0]!.match).not.toBe(migration.rules[1]!.match);
  migration.note("same");
  migration.note("same");
  expect(migration.notes).toEqual(["same"]);
});

test("a single value is not a list, and header names become attribute names", () => {
  expect(oneOrList(["a"])).toBe("a");
  expect(oneOrList(["a", "b"])).toEqual(["a", "b"]);
  expect(attributeName("X-Tenant-Id")).toBe("x_tenant_id");
});
