import { beforeEach, expect, test, vi } from "vitest";

/** Fresh modules, because a warning is emitted once per process. */
let clientAddresses: typeof import("./client-address.js").clientAddresses;
let warnings: string[];

beforeEach(async () => {
  vi.resetModules();
  ({ clientAddresses } = await import("./client-address.js"));
  warnings = [];
  vi.spyOn(process, "emitWarning").mockImplementation((_message, options) => {
    warnings.push((options as { code: string }).code);
  });
  return () => vi.restoreAllMocks();
});

test("without trusted proxies the peer is the client, and a forwarded header is warned of once", () => {
  const read = clientAddresses();
  expect(read({ peer: "192.0.2.1" })).toBe("192.0.2.1");
  expect(warnings).toEqual([]);
  expect(read({ peer: "192.0.2.1", forwarded: "203.0.113.1" })).toBe("192.0.2.1");
  expect(read({ peer: "192.0.2.1", forwarded: "203.0.113.2" })).toBe("192.0.2.1");
  expect(warnings).toEqual(["SLUICE_FORWARDED_WITHOUT_TRUST"]);
});

test.each([
  ["blocks trust by address, from the right", ["10.0.0.0/8"], "198.51.100.1, 203.0.113.1, 10.0.0.2", "203.0.113.1"],
  ["the farthest is taken where every hop is trusted", ["10.0.0.0/8"], "10.0.0.3, 10.0.0.2", "10.0.0.3"],
  ["a number trusts that many hops", 2, "198.51.100.1, 203.0.113.1, 10.0.0.2", "203.0.113.1"],
  ["one hop is the proxy at the door", 1, "198.51.100.1, 203.0.113.1", "203.0.113.1"],
  ["several fields are one list", "uniquelocal", ["198.51.100.1", "203.0.113.1, 10.0.0.2"], "203.0.113.1"],
  ["ports and brackets are passed over", "uniquelocal", "203.0.113.1:4711", "203.0.113.1"],
  ["brackets around IPv6 too", "uniquelocal", "[2001:db8::1]:443", "2001:db8::"],
  ["what is no address stops the walk", "uniquelocal", "203.0.113.1, unknown", "10.0.0.1"],
  ["an empty list is none", "uniquelocal", "", "10.0.0.1"],
  ["names may be mixed with blocks", "loopback, 10.0.0.1", "203.0.113.1", "203.0.113.1"],
])("%s", (_name, trustProxy, forwarded, expected) => {
  expect(clientAddresses({ trustProxy })({ peer: "10.0.0.1", forwarded })).toBe(expected);
  expect(warnings).toEqual([]);
});

test("a peer that is not trusted cannot forward anything", () => {
  const read = clientAddresses({ trustProxy: ["10.0.0.0/8"] });
  expect(read({ peer: "192.0.2.1", forwarded: "10.0.0.9, 203.0.113.1" })).toBe("192.0.2.1");
});

test("a proxy on a Unix socket has no address, and is trusted by hop count", () => {
  expect(clientAddresses({ trustProxy: 1 })({ peer: undefined, forwarded: "203.0.113.1" })).toBe("203.0.113.1");
  expect(warnings).toEqual([]);
});

test.each([
  ["::ffff:192.0.2.1", 56, "192.0.2.1"],
  ["::ffff:c000:201", 56, "192.0.2.1"],
  ["2001:db8:1:2fab:3:4:5:6", 56, "2001:db8:1:2f00::"],
  ["2001:db8:1:2fab:3:4:5:6", 64, "2001:db8:1:2fab::"],
  ["2001:DB8:1:2FAB:3:4:5:6", 128, "2001:db8:1:2fab:3:4:5:6"],
  ["2001:db8:1:2fab:3:4:5:6", 60, "2001:db8:1:2fa0::"],
  ["2001:0:0:1:0:0:0:1", 128, "2001:0:0:1::1"],
  ["fe80::1%eth0", 56, "fe80::"],
  ["::1", 128, "::1"],
  ["192.0.2.1:4711", 56, "192.0.2.1"],
  ["[2001:db8:1:2fab::1]:4711", 56, "2001:db8:1:2f00::"],
])("%s under a prefix of %i is counted as %s", (peer, ipv6Prefix, expected) => {
  expect(clientAddresses({ ipv6Prefix })({ peer })).toBe(expected);
});

test("requests without an address are counted together, with a warning", () => {
  const read = clientAddresses();
  expect([read({ peer: undefined }), read({ peer: "" })]).toEqual(["unknown", "unknown"]);
  expect(warnings).toEqual(["SLUICE_MISSING_ADDRESS"]);
});

test.each([["0.0.0.0/0"], ["::/0"], [["10.0.0.0/8", "0.0.0.0/0"]], [999]])(
  "trusting everyone (%j) is warned of",
  (trustProxy) => {
    clientAddresses({ trustProxy });
    expect(warnings).toEqual(["SLUICE_TRUSTS_EVERYBODY"]);
  },
);

test("nothing in a request throws", () => {
  const read = clientAddresses({ trustProxy: 40 });
  for (const forwarded of [
    ",",
    ",,,",
    "a".repeat(100_000),
    "1.2.3.4,".repeat(10_000),
    "[",
    "]:1",
    "\u0000",
    "::ffff:",
  ]) {
    expect(typeof read({ peer: "192.0.2.1", forwarded })).toBe("string");
  }
});
