import { describe, expect, test } from "vitest";
import { whyForgeable } from "./csrf.js";

const own = { "x-sluice-dashboard": "1", host: "sluice.example:8080" };

describe("a change", () => {
  test.each([
    ["same origin by Sec-Fetch-Site", { ...own, "sec-fetch-site": "same-origin" }],
    ["same host by Origin", { ...own, origin: "https://sluice.example:8080" }],
  ])("passes: %s", (_, headers) => {
    expect(whyForgeable({ method: "PUT", headers })).toBeUndefined();
  });

  test.each([
    ["no header of ours", { host: own.host, "sec-fetch-site": "same-origin" }],
    ["another port of the same host", { ...own, "sec-fetch-site": "same-site" }],
    ["typed into the address bar", { ...own, "sec-fetch-site": "none" }],
    ["neither Sec-Fetch-Site nor Origin", own],
    ["another port by Origin", { ...own, origin: "https://sluice.example:8081" }],
    ["a sandboxed frame", { ...own, origin: "null" }],
    ["an Origin that only begins like ours", { ...own, origin: "https://sluice.example:8080.evil.example" }],
    ["an Origin with a path", { ...own, origin: "https://sluice.example:8080/x" }],
    [
      "Origin fits, Sec-Fetch-Site does not",
      { ...own, origin: "https://sluice.example:8080", "sec-fetch-site": "cross-site" },
    ],
  ])("is refused: %s", (_, headers) => {
    expect(whyForgeable({ method: "POST", headers })).toMatch(/x-sluice-dashboard|sec-fetch-site|origin/);
  });
});

test("reading needs no CSRF header, and works from the address bar, but not from another site", () => {
  const host = own.host;
  const read = (headers: Record<string, string>) => whyForgeable({ method: "GET", headers: { host, ...headers } });
  expect([read({}), read({ "sec-fetch-site": "none" }), read({ "sec-fetch-site": "same-origin" })]).toEqual(
    Array(3).fill(undefined),
  );
  expect(read({ "sec-fetch-site": "cross-site" })).toBeDefined();
  expect(read({ origin: "https://evil.example" })).toBeDefined();
});

test("an unknown method counts as a change", () => {
  expect(whyForgeable({ method: "PROPFIND", headers: { host: own.host } })).toBeDefined();
});
