import { expect, test } from "vitest";
import { type Address, allowedAddress, isPublicAddress } from "./public-address.js";

const at = (address: string): Address => ({ address, family: address.includes(":") ? 6 : 4 });

test.each([
  ...[
    "127.0.0.1",
    "127.9.9.9",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "0.0.0.0",
  ],
  ...["100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.9", "198.18.0.1"],
  ...["::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:a00:1"],
  ...["64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1", "2001::1", "::127.0.0.1"],
])("%s is not public", (address) => {
  expect(isPublicAddress(at(address))).toBe(false);
});

test.each(["93.184.216.34", "172.32.0.1", "8.8.8.8", "2606:4700::1111", "2a00:1450:4001::1"])(
  "%s is public",
  (address) => {
    expect(isPublicAddress(at(address))).toBe(true);
  },
);

test("a name with one private address among its public ones is refused", async () => {
  const resolve = async () => [at("93.184.216.34"), at("10.0.0.1")];
  await expect(allowedAddress("hooks.example", { resolve, allowPrivate: false })).rejects.toThrow(
    "hooks.example is at 10.0.0.1, which is not public",
  );
});

test("a literal address is checked like a name, in any spelling that a URL allows", async () => {
  const resolve = () => Promise.reject(new Error("not asked"));
  for (const url of [
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://[::1]/",
    "http://[::ffff:7f00:1]/",
  ]) {
    await expect(allowedAddress(new URL(url).hostname, { resolve, allowPrivate: false }), url).rejects.toThrow(
      "not public",
    );
  }
});

test("where private addresses are allowed, the first one is used", async () => {
  const resolve = async () => [at("10.0.0.1"), at("10.0.0.2")];
  expect(await allowedAddress("intranet", { resolve, allowPrivate: true })).toEqual(at("10.0.0.1"));
});
