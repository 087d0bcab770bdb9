import { parse } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hasEncodedSlash, normalTarget, requestPath, unresolvedPath } from "./request-path.js";

test.each([
  ["/v1/users?page=2", "/v1/users"],
  ["/v1/users#part", "/v1/users"],
  ["/v1/users#part?x", "/v1/users"],
  ["/v1/users?x#y?z", "/v1/users"],
  ["/", "/"],
  ["", "/"],
  ["?x", "/"],
  ["*", "*"],
  ["/%6cogin", "/login"],
  ["//login", "/login"],
  ["///login//", "/login/"],
  ["/./login", "/login"],
  ["/x/../login", "/login"],
  ["/x/%2e%2E/login", "/login"],
  ["/x/.%2e/login", "/login"],
  ["/x//../login", "/login"],
  ["/../../login", "/login"],
  ["/login/.", "/login/"],
  ["/login/x/..", "/login/"],
  ["/.", "/"],
  ["/..", "/"],
  ["/.well-known/x", "/.well-known/x"],
  ["/...", "/..."],
  ["/a..b", "/a..b"],
  ["/caf%C3%A9", "/café"],
  ["/caf\xc3\xa9", "/café"],
  ["/%F0%9F%92%A7", "/💧"],
  ["/api/x%ff", "/api/x%FF"],
  ["/%61pi/x%ff", "/api/x%FF"],
  ["/%c0%af", "/%C0%AF"],
  ["/%ed%a0%80", "/%ED%A0%80"],
  ["/%C3%A9%80", "/é%80"],
  ["/a%2fb", "/a%2Fb"],
  ["/a%5cb", "/a%5Cb"],
  ["/a\\b", "/a%5Cb"],
  ["/a%3bb", "/a%3Bb"],
  ["/a;b", "/a;b"],
  ["/a%2541", "/a%2541"],
  ["/100%", "/100%25"],
  ["/%zz", "/%25zz"],
  ["/a%00b", "/a%00b"],
  ["/a%0d%0ab", "/a%0D%0Ab"],
  ["/a%20b", "/a b"],
  ["/items%3AbatchGet", "/items:batchGet"],
  ["/%7Bid%7D", "/{id}"],
  ["/{id}", "/{id}"],
  ["/LOGIN", "/LOGIN"],
  ["/login/", "/login/"],
  ["http://host:8080/v1/x?y", "/v1/x"],
  ["HTTP://host", "/"],
  ["http://host?x=/y", "/"],
  ["http://host//login", "/login"],
  ["http://host\\login", "/%5Clogin"],
  ["login", "/login"],
])("the target %j has the path %j", (target, path) => {
  expect(requestPath(target)).toBe(path);
});

test("options merge what some servers merge", () => {
  expect(requestPath("/api%2fx", { encodedSlashes: "decode" })).toBe("/api/x");
  expect(requestPath("/x%2f..%5clogin", { encodedSlashes: "decode" })).toBe("/login");
  expect(requestPath("/LogIn", { ignoreCase: true })).toBe("/login");
  expect(requestPath("/login/", { ignoreTrailingSlash: true })).toBe("/login");
  expect(requestPath("/", { ignoreTrailingSlash: true })).toBe("/");
  expect(requestPath("/x;a=1/..;/login;b", { ignoreParams: true })).toBe("/login");
  expect(requestPath("/login;b", { ignoreParams: true })).toBe("/login");
});

describe("what a proxy passes on", () => {
  test.each([
    ["/v1/x?y=1", "/v1/x?y=1"],
    ["/x/../login?next=/../a//b#top", "/login?next=/../a//b"],
    ["http://host/v1//x?y", "/v1/x?y"],
    ["http://host?y", "/?y"],
    ["/items%3abatchGet", "/items%3AbatchGet"],
    ["/caf\xc3\xa9?q=\xe9", "/caf%C3%A9?q=%E9"],
    ["/100%?a=50%", "/100%25?a=50%"],
    ["/a b", "/a%20b"],
    ["/{id}", "/%7Bid%7D"],
    ["*", "*"],
  ])("%j becomes %j", (target, normal) => {
    expect(normalTarget(target)).toBe(normal);
  });

  const target = fc.stringMatching(/^(?:\/|%2[eEfF5]|%5[cC]|\.|%[0-9a-fA-F]{2}|%|;|[\x80-\xff]|[a-zA-Z{ |\\]){0,24}$/);

  test("it is a fixed point, only visible ASCII, and has the path that was judged", () => {
    fc.assert(
      fc.property(target, fc.constantFrom("keep" as const, "decode" as const), (text, encodedSlashes) => {
        const options = { encodedSlashes };
        const sent = normalTarget(`/${text}`, options);
        expect(sent).toMatch(/^\/[\x21-\x7e]*$/);
        expect(normalTarget(sent, options)).toBe(sent);
        expect(requestPath(sent, options)).toBe(requestPath(`/${text}`, options));
        expect(sent).not.toMatch(/\/\/|\/\.\.?(?:\/|$)/);
      }),
      { numRuns: 2_000 },
    );
  });

  test("a server that decodes once finds the same path, whether it resolves dots or not", () => {
    fc.assert(
      fc.property(target, (text) => {
        const sent = normalTarget(`/${text}`, { encodedSlashes: "decode" });
        // WHATWG URL: what Node programs make of `new URL(req.url, base)`.
        expect(new URL(sent, "http://h").pathname.replaceAll("%7C", "|")).toBe(sent.replaceAll("%7C", "|"));
      }),
      { numRuns: 2_000 },
    );
  });
});

test("a target that climbs has a second reading, others do not", () => {
  expect(unresolvedPath("/admin/../x?y")).toBe("/admin/../x");
  expect(unresolvedPath("/admin/%2e%2E//x")).toBe("/admin/../x");
  for (const target of ["/x", "/x..y", "/x/...", "/x?a=/../b", "*"]) expect(unresolvedPath(target)).toBeUndefined();
});

test("Node's url.parse reading of backslashes and a trailing blank is a second reading", () => {
  expect(unresolvedPath("HTTP://host/expensive\\x")).toBe("/expensive/x");
  expect(unresolvedPath("http://host\\login")).toBe("/login");
  expect(unresolvedPath("/expensive\\x#f")).toBe("/expensive/x");
  expect(unresolvedPath("/x\\..\\login")).toBe("/x/../login");
  expect(unresolvedPath("/login\xa0\xa0")).toBe("/login");
  expect(unresolvedPath("/LOGIN/\xa0", { ignoreCase: true, ignoreTrailingSlash: true })).toBe("/login");
  for (const target of ["/login?a=\\", "/login?a\xa0"]) expect(unresolvedPath(target)).toBeUndefined();
});

test("every path that Node's url.parse finds in a target is one of its readings, or leads to one", () => {
  const target = fc.stringMatching(/^(?:HTTP:\/\/h)?\/(?:login|[/\\]|\.\.?|[a-z]|\xa0){0,12}[?#\xa0]?$/);
  fc.assert(
    fc.property(target, (text) => {
      const routed = requestPath(parse(text).pathname ?? "/");
      const readings = [text, unresolvedPath(text) ?? text].map((reading) => requestPath(reading));
      expect(readings).toContain(routed);
    }),
    { numRuns: 5_000 },
  );
});

test("encoded slashes are detected only in the path", () => {
  for (const target of ["/a%2fb", "/a%5Cb", "/a\\b"]) expect(hasEncodedSlash(target)).toBe(true);
  for (const target of ["/a/b", "/a?x=%2f", "/a#%2f", "http://h/a"]) expect(hasEncodedSlash(target)).toBe(false);
});
