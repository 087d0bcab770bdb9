import { expect, test } from "vitest";
import { ownHosts } from "./own-hosts.js";

const loopback = ownHosts({ host: "127.0.0.1", allowed: undefined });

test.each([
  "127.0.0.1",
  "127.0.0.1:8080",
  "localhost",
  "LOCALHOST:8080",
  "localhost.",
  "sluice.localhost:8080",
  "[::1]",
  "[::1]:8080",
  "[::ffff:127.0.0.1]:8080",
  "192.0.2.7:8080",
])("a page under %s is of this machine or of an address: no DNS stands behind it", (host) => {
  expect(loopback(host)).toBe(true);
});

test.each([
  "evil.example",
  "evil.example:8080",
  "localhost.evil.com",
  "127.0.0.1.evil.com",
  "127.0.0.1.evil.com:8080",
  "notlocalhost",
  "localhost@evil.com",
  "evil.com#localhost",
  "evil.com:8080:127.0.0.1",
  "[evil.com]",
  "[::1].evil.com",
  "[::1]evil.com:80",
  "1-127-0-0-1.nip.io",
  "0x7f.1",
  "",
  "..localhost..",
])("%j is a name that DNS could have pointed here", (host) => {
  expect(loopback(host)).toBe(false);
});

test("configured names pass, in any case and with any port, but not their subdomains", () => {
  const isOwn = ownHosts({ host: "127.0.0.1", allowed: ["limits.example"] });
  expect(["limits.example", "LIMITS.example.:443", "127.0.0.1"].map(isOwn)).toEqual([true, true, true]);
  expect(["a.limits.example", "limits.example.evil.com", "evil.com"].map(isOwn)).toEqual([false, false, false]);
});

test("on a public address every name passes, unless names are configured", () => {
  expect(ownHosts({ host: "0.0.0.0", allowed: undefined })("sluice.internal")).toBe(true);
  const isOwn = ownHosts({ host: "0.0.0.0", allowed: ["sluice.internal"] });
  expect(["sluice.internal:8080", "10.0.0.7:8080", "evil.com"].map(isOwn)).toEqual([true, true, false]);
});

test("HTTP/1.0 without a Host passes: no browser sends it", () => {
  expect(loopback(undefined)).toBe(true);
});
