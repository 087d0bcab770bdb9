import type { Rule } from "sluice";
import { expect, test } from "vitest";
import { startScreen } from "./start-screen.js";

const base = {
  version: "1.2.3",
  http: "http://127.0.0.1:8080",
  grpc: "127.0.0.1:8081",
  proxy: undefined,
  upstream: undefined,
  adminTokenFile: ".sluice/admin-token",
  adminToken: undefined,
  store: "memory",
  rulesSource: "a test",
  rulesVersion: 1,
  workers: 1,
  apiToken: false,
};
const rule: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 5, window: "1m" };

test.each([
  ["a tight rule is worth repeating for", [rule], "Repeat this until it is refused:"],
  ["no rules refuse nothing", [], "Ask it (nothing is refused by these rules):"],
  ["a rule in shadow refuses nothing", [{ ...rule, mode: "shadow" }], "Ask it (nothing is refused by these rules):"],
  ["nobody repeats a line 5000 times", [{ ...rule, limit: 5000 }], "Ask it (refused after 5000 in time):"],
] as [string, Rule[], string][])("%s", (_what, rules, line) => {
  expect(startScreen({ ...base, rules })).toContain(`\n${line}\n  curl -s http://127.0.0.1:8080/v1/check`);
});

test.each([
  [
    "a token that may be shown stands beside its place",
    { adminToken: "slu_x" },
    "slu_x   (kept in .sluice/admin-token)",
  ],
  ["else only its place does", {}, "token in .sluice/admin-token"],
  ["a token of the operator's own is not repeated", { adminTokenFile: undefined }, "token as set"],
])("%s", (_what, given, line) => {
  expect(startScreen({ ...base, rules: [], ...given })).toMatch(
    new RegExp(`^ {2}admin .*${line.replace(/[()]/g, "\\$&")}$`, "m"),
  );
});
