import { expect, test } from "vitest";
import { Suggester } from "./suggest.js";

const windows = [
  { text: "1s", ms: 1_000 },
  { text: "1m", ms: 60_000 },
];

test("percentiles are over keys: the smallest value that at least this share of keys does not exceed", () => {
  const suggester = new Suggester({ key: ["user"], windows, headroom: 1 });
  // User n sends n requests within one second, for n from 1 to 100.
  for (let user = 1; user <= 100; user++) for (let i = 0; i < user; i++) suggester.add({ user }, user * 10_000);
  const [second] = suggester.read().windows;
  expect(second).toMatchObject({ keys: 100, p50: 50, p99: 99, p999: 100, max: 100 });
  expect(second!.limits).toEqual([
    { from: "p99", limit: 99, keysTouched: 1 },
    { from: "p99.9", limit: 100, keysTouched: 0 },
    { from: "max", limit: 100, keysTouched: 0 },
  ]);
});

test("a request that lacks a key attribute is counted separately; a key of several attributes includes all", () => {
  const suggester = new Suggester({ key: ["user", "path"], windows, headroom: 1.2 });
  suggester.add({ user: "bob", path: "/a" }, 0);
  suggester.add({ user: "bob" }, 1);
  const found = suggester.read();
  expect(found).toMatchObject({ requests: 2, withoutKey: 1 });
  expect(found.windows[0]!.busiest).toEqual([{ key: "user=bob, path=/a", max: 1, at: "1970-01-01T00:00:00.000Z" }]);
  expect(found.rules.map(({ id, limit }) => [id, limit])).toEqual([
    ["user-path-burst", 2],
    ["user-path-sustained", 2],
  ]);
});

test("no requests, no suggestion", () => {
  expect(new Suggester({ key: ["user"], windows, headroom: 1 }).read()).toMatchObject({ requests: 0, rules: [] });
});

test("inherited object properties are no attributes", () => {
  const suggester = new Suggester({ key: ["constructor"], windows, headroom: 1 });
  suggester.add({ ip: "10.0.0.1" }, 0);
  expect(suggester.read()).toMatchObject({ requests: 1, withoutKey: 1, rules: [] });
  suggester.add({ constructor: "acme" } as unknown as { [name: string]: string }, 1);
  expect(suggester.read().windows[0]!.busiest).toMatchObject([{ key: "constructor=acme", max: 1 }]);
});
