import { expect, test } from "vitest";
import { verdict } from "./algorithms/model.js";
import { compileRuleBook } from "./rules/rule-book.js";
import { AtomicSoleReply, SoleRequest } from "./sole-request.js";

test("a request of one check and its reply look like any other, for a refund or an explanation", () => {
  const book = compileRuleBook([{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 3, window: "1m" }], 1);
  const [check] = book.checks({ user: "a" }, undefined);
  const request = new SoleRequest(check!.plan, check!.key, 1, 4);
  const { checks, charge, entryId, id, fingerprint, rulesVersion } = request;
  expect({ checks, charge, entryId, id, fingerprint, rulesVersion }).toEqual({
    ...{ checks: [check], charge: true, entryId: "", id: undefined, fingerprint: "", rulesVersion: 4 },
  });
  const found = verdict(true, 2, 0, 5, undefined);
  const { verdicts, nowMs, guarantee } = new AtomicSoleReply(7, found);
  expect({ verdicts, nowMs, guarantee }).toEqual({ verdicts: [found], nowMs: 7, guarantee: "atomic" });
});
