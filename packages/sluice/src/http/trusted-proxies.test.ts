import { expect, test } from "vitest";
import { compileTrust, type TrustedProxies, trustsEverybody } from "./trusted-proxies.js";

test("a number trusts that many hops, whatever their addresses", () => {
  const trust = compileTrust(2);
  expect([0, 1, 2].map((hop) => trust("203.0.113.9", hop))).toEqual([true, true, false]);
  expect(compileTrust(false)("127.0.0.1", 0)).toBe(false);
});

test("blocks, addresses and the names of private ranges are trusted at any hop", () => {
  const trust = compileTrust("loopback, 10.1.0.0/16, 2001:db8::7");
  const trusted = ["127.0.0.9", "::1", "10.1.255.1", "2001:db8::7", "::ffff:10.1.2.3"];
  expect(trusted.map((address) => trust(address, 5))).toEqual(trusted.map(() => true));
  const others = ["10.2.0.1", "2001:db8::8", "unknown", "", "10.1.0.0/16"];
  expect(others.map((address) => trust(address, 0))).toEqual(others.map(() => false));
});

test.each([-1, 1.5, "10.0.0.0/33", ["nearby"], "constructor"] as TrustedProxies[])("%j is refused", (trusted) => {
  expect(() => compileTrust(trusted)).toThrow(/^trustProxy: expected false, a number of hops/);
});

test.each([
  [false, false],
  [32, false],
  [999, true],
  ["10.0.0.0/8", false],
  ["0.0.0.0/0", true],
  [["loopback", "::/0"], true],
] as [TrustedProxies, boolean][])("%j trusts everyone: %s", (trusted, everybody) => {
  expect(trustsEverybody(trusted)).toBe(everybody);
});
