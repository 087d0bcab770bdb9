import { expect, test } from "vitest";
import { contains, parseAddress, parseCidr } from "./cidr.js";

const isIn = (cidr: string, address: string): boolean => contains(parseCidr(cidr)!, parseAddress(address)!);

test.each([
  ["1.2.3.4", "::ffff:1.2.3.4"],
  ["1.2.3.4", "::ffff:102:304"],
  ["1.2.3.4", "::FFFF:0102:0304"],
  ["::1", "0:0:0:0:0:0:0:1"],
  ["2001:db8::1", "2001:0DB8:0:0::0:1"],
  ["64:ff9b::1.2.3.4", "64:ff9b::102:304"],
  ["fe80::1", "fe80::1%eth0"],
  ["1::", "1:0:0:0:0:0:0:0"],
])("%s and %s are the same address", (one, other) => {
  expect(parseAddress(one)).toBeDefined();
  expect(parseAddress(one)).toBe(parseAddress(other));
});

test.each([
  "",
  "1.2.3",
  "1.2.3.4.5",
  "1.2.3.256",
  "01.2.3.4",
  "1..2.3",
  "1.2.3.4 ",
  "a.b.c.d",
  "1.2.3.-4",
  ":",
  ":::",
  "1::2::3",
  "1:2:3:4:5:6:7",
  "1:2:3:4:5:6:7:8:9",
  "1:2:3:4:5:6:7::8",
  "12345::",
  "g::",
  "::1.2.3",
  "1.2.3.4::",
  "1.2.3.4:1::",
  "[::1]",
  "1.2.3.4:80",
  "x".repeat(10_000),
])("%j is not an address", (text) => {
  expect(parseAddress(text)).toBeUndefined();
});

test.each([
  ["10.0.0.0/8", "10.255.0.1", true],
  ["10.0.0.0/8", "11.0.0.1", false],
  ["10.1.2.3/8", "10.200.0.0", true],
  ["192.168.1.128/25", "192.168.1.128", true],
  ["192.168.1.128/25", "192.168.1.127", false],
  ["172.16.0.0/12", "172.31.255.255", true],
  ["172.16.0.0/12", "172.32.0.0", false],
  ["0.0.0.0/0", "8.8.8.8", true],
  ["0.0.0.0/0", "2001:db8::1", false],
  ["10.0.0.0/8", "::ffff:10.1.1.1", true],
  ["::ffff:10.0.0.0/104", "10.1.1.1", true],
  ["2001:db8::/33", "2001:db8:7fff::1", true],
  ["2001:db8::/33", "2001:db8:8000::1", false],
  ["::/0", "2001:db8::1", true],
  ["::/0", "1.2.3.4", false],
  ["1.2.3.4", "1.2.3.4", true],
  ["1.2.3.4", "1.2.3.5", false],
])("%s contains %s: %s", (cidr, address, expected) => {
  expect(isIn(cidr, address)).toBe(expected);
});

test.each([
  "10.0.0.0/33",
  "10.0.0.0/-1",
  "10.0.0.0/",
  "10.0.0.0/08",
  "10.0.0.0/8/8",
  "::/129",
  "::ffff:1.2.3.4/95",
  "fe80::1%eth0",
  "x/8",
])("%s is not a CIDR block", (text) => {
  expect(parseCidr(text)).toBeUndefined();
});
