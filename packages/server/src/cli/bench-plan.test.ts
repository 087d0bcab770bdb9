import { expect, test } from "vitest";
import { type BenchOptions, benchPlan, parseLength } from "./bench-plan.js";

const options: BenchOptions = {
  server: "http://127.0.0.1:8080",
  connections: 8,
  timeout: 5_000,
  yes: false,
  json: false,
};
const plan = (given: string[] = [], more: Partial<BenchOptions> = {}) => benchPlan(given, { ...options, ...more });

test("both bounds apply by default; a given one applies alone", () => {
  expect(plan()).toMatchObject({ requests: 10_000, durationMs: 10_000, keys: 1_000 });
  expect(plan([], { requests: 7 })).toMatchObject({ requests: 7, durationMs: Number.POSITIVE_INFINITY });
  expect(plan([], { duration: 7 })).toMatchObject({ requests: Number.POSITIVE_INFINITY, durationMs: 7 });
  expect(plan([], { requests: 7, duration: 8 })).toMatchObject({ requests: 7, durationMs: 8 });
});

test("generated users by default; {n} spreads an attribute; a named user is a single key", () => {
  const bodies = (given: string[], more?: Partial<BenchOptions>) =>
    [0, 1, 2].map((n) => JSON.parse(plan(given, more).bodyOf(n)));
  expect(bodies(["path=/x"], { keys: 2, cost: 3 })).toEqual(
    [0, 1, 0].map((n) => ({ attributes: { path: "/x", user: `bench-${n}` }, cost: 3 })),
  );
  expect(bodies(["ip=10.0.{n}.{n}"])[2]).toEqual({ attributes: { ip: "10.0.2.2" } });
  expect(plan(["user=42"]).keys).toBe(1);
  expect(bodies(["user=42"])[1]).toEqual({ attributes: { user: "42" } });
});

test.each(["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://127.1", "http://127.9.9.9"])(
  "%s is this machine",
  (server) => expect(plan([], { server }).server).toBe(server),
);

test.each([
  "http://10.0.0.1",
  "https://limits.example.com",
  "http://127.0.0.1.example.com",
  "http://localhost.example",
])("%s is not, and needs --yes", (server) => {
  expect(() => plan([], { server })).toThrow(`--server: ${new URL(server).host} is not this machine`);
  expect(plan([], { server, yes: true }).server).toBe(server);
});

test("an error names the argument, what was expected and what was given", () => {
  expect(() => plan(["nonsense"])).toThrow('expected attributes such as user=42, got "nonsense"');
  expect(() => plan([], { server: "redis://127.0.0.1" })).toThrow("--server: expected an http or https URL");
  expect(() => plan(["user=1"], { keys: 3 })).toThrow("--keys: no attribute has {n}");
  expect(() => plan([], { connections: 1_001 })).toThrow("--connections: expected at most 1000, got 1001");
  expect(() => plan([], { rate: 100_001 })).toThrow("--rate: expected at most 100000, got 100001");
  expect(parseLength("duration")("1m")).toBe(60_000);
  for (const text of ["0s", "soon", "2d", ""]) {
    expect(() => parseLength("duration")(text)).toThrow(
      `--duration: expected a duration such as 10s, of at most a day, got ${JSON.stringify(text)}`,
    );
  }
});
