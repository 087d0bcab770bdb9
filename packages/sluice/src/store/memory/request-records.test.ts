import { expect, test } from "vitest";
import { verdict } from "../../algorithms/model.js";
import { REMEMBER_MS, type StoreReply, type StoreRequest } from "../store.js";
import { RequestRecords } from "./request-records.js";

const request: StoreRequest = {
  checks: [],
  charge: true,
  entryId: "e1",
  id: "id",
  fingerprint: "print",
  rulesVersion: 3,
};
const reply: StoreReply = { nowMs: 10, verdicts: [verdict(true, 1, 0, 0, undefined)], guarantee: "atomic" };

test("an id is recalled for a minute, as repeated", () => {
  const records = new RequestRecords(10_000);
  records.remember("id", request, reply, 10);
  expect(records.find("id", 10)).toMatchObject({ fingerprint: "print" });
  expect(records.recall("id", 9 + REMEMBER_MS)).toEqual({
    ...reply,
    repeated: { entryId: "e1", rulesVersion: 3, checks: [], atMs: 9 + REMEMBER_MS },
  });
  expect(records.recall("id", 10 + REMEMBER_MS)).toBeUndefined();
  expect(records.recall("other", 10)).toBeUndefined();
});

test("a deleted id is free", () => {
  const records = new RequestRecords(10_000);
  records.remember("id", request, reply, 10);
  records.delete("id");
  expect([records.find("id", 10), records.count, records.bytes]).toEqual([undefined, 0, 0]);
});

test("ids are bounded in bytes: the oldest are evicted, and counted unless they had expired", () => {
  const records = new RequestRecords(2_000);
  for (let i = 0; i < 10; i++) records.remember(`id${i}`, request, reply, i);
  expect(records.bytes).toBeLessThanOrEqual(2_000);
  expect(records.evicted).toBe(10 - records.count);
  expect(records.find("id9", 10)).toBeDefined();
  expect(records.find("id0", 10)).toBeUndefined();
});
