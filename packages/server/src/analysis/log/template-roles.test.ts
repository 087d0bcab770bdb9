import { expect, test } from "vitest";
import { compileTemplate } from "./template.js";
import { durationIn, type Pieces, requestOf, rolesOf } from "./template-roles.js";

const roles = rolesOf(
  compileTemplate("$msec $uri $a_processing_time $b_processing_time $http_x_user $http_cookie $remote_addr"),
  { wanted: { headers: new Set(["x-user"]), fields: ["$Remote_Addr", "absent"] }, timeIsEnd: true },
);
const pieces = (values: readonly string[]): Pieces => {
  const value = (at: number): string | undefined => values[at];
  return {
    timeMs: () => Number(values[0]),
    requestLine: () => undefined,
    value,
    rareValue: value,
    peer: value,
    durationMs: (at, scale) => (at < 0 || Number(values[at]) < 0 ? undefined : Number(values[at]) * scale),
  };
};

test("only values that a request or the user needs are wanted", () => {
  expect(roles.isWanted).toEqual([true, true, true, true, true, false, true]);
  expect(roles.headerAts).toEqual([{ name: "x-user", at: 4 }]);
  expect(roles.fieldAts).toEqual([6, -1]);
});

test("a request's arrival is its line's time minus the duration; parts that never ended are left out", () => {
  expect(requestOf(roles, pieces(["5000", "/a", "0.5", "-1", "u", "c", "10.0.0.1"]))).toMatchObject({
    atMs: 4_500,
    durationMs: 500,
    method: "GET",
    target: "/a",
    headers: { "x-user": "u" },
    fields: ["10.0.0.1", undefined],
  });
  expect(requestOf(roles, pieces(["5000", "/a", "-1", "-1"]))).toMatchObject({ atMs: 5_000, durationMs: undefined });
});

test("durations", () => {
  expect(["0.012", "12ms", "ms", "-1", "x", "1e9"].map(durationIn)).toEqual([
    0.012,
    12,
    0,
    undefined,
    undefined,
    undefined,
  ]);
});
