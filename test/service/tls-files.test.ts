/** Certificates that are replaced under way: in two steps, by garbage, by half of a file, by a swapped link; and gone for a moment. */
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TlsFiles } from "../../packages/server/src/http/tls-files.js";
import type { Log } from "../../packages/server/src/log.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeCertificate } from "../harness/certificates.js";
import { makeTempFolder } from "../harness/leash.js";

interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

function pair(): Pair {
  const { certFile, keyFile } = makeCertificate();
  return { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}

function watch(clientCa?: string) {
  const folder = makeTempFolder("tls-files");
  const names = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") };
  const told: string[] = [];
  const log: Log = {
    debug: () => undefined,
    info: (message) => void told.push(message),
    warn: (message, fields) => void told.push(`${message} ${JSON.stringify(fields)}`),
    error: () => undefined,
  };
  const open = () => new TlsFiles({ ...names, clientCa }, log);
  return { folder, names, told, open };
}

const inForce = /in force$/;
const unusable = /cannot be used/;

describe.skipIf(whyMissing("openssl"))("certificates", () => {
  test("replaced in two steps, removed, half written and garbage: the last good ones stay, until all fit", async () => {
    const { names, told, open } = watch();
    const [old, renewed] = [pair(), pair()];
    const write = ({ cert, key }: Pair) => {
      writeFileSync(names.cert, cert);
      writeFileSync(names.key, key);
    };
    write(old);
    const files = open();
    const steps: (() => void)[] = [
      () => writeFileSync(names.cert, renewed.cert),
      () => writeFileSync(names.cert, "garbage"),
      () => writeFileSync(names.cert, old.cert.subarray(0, old.cert.length / 2)),
      // A chain whose second certificate is half written: OpenSSL alone would take the first.
      () => writeFileSync(names.cert, Buffer.concat([old.cert, renewed.cert.subarray(0, 200)])),
      () => rmSync(names.key),
    ];
    for (const step of steps) {
      const before = told.length;
      step();
      await expect.poll(() => told.length, { timeout: 20_000 }).toBeGreaterThan(before);
      expect(told.slice(before).every((line) => unusable.test(line))).toBe(true);
      expect(files.current.cert.equals(old.cert)).toBe(true);
    }
    write(renewed);
    await expect.poll(() => told.some((line) => inForce.test(line)), { timeout: 20_000 }).toBe(true);
    expect(files.current.cert.equals(renewed.cert)).toBe(true);
    expect(told.join("\n")).not.toContain("PRIVATE KEY");
    files.close();
  });

  test("of a client authority: half of a list, or garbage, shuts nobody out", async () => {
    const authority = join(makeTempFolder("authority"), "ca.crt");
    const { names, told, open } = watch(authority);
    const own = pair();
    writeFileSync(names.cert, own.cert);
    writeFileSync(names.key, own.key);
    writeFileSync(authority, "garbage");
    expect(open).toThrow("expected certificates in PEM");
    const list = Buffer.concat([pair().cert, pair().cert]);
    writeFileSync(authority, list);
    const files = open();
    for (const bad of ["", "garbage", list.subarray(0, list.length - 100)]) {
      const before = told.length;
      writeFileSync(authority, bad);
      await expect.poll(() => told.length, { timeout: 20_000 }).toBeGreaterThan(before);
      expect(told.at(-1)).toMatch(unusable);
      expect(files.current.ca?.equals(list)).toBe(true);
    }
    files.close();
  });

  test("mounted as Kubernetes does: the link to the folder is swapped, the files stay links", async () => {
    const { folder, names, told, open } = watch();
    const generation = (name: string, { cert, key }: Pair) => {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, "tls.crt"), cert);
      writeFileSync(join(folder, name, "tls.key"), key);
      symlinkSync(name, join(folder, "..data_tmp"));
      renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
    };
    const [old, renewed] = [pair(), pair()];
    generation("..1", old);
    symlinkSync("..data/tls.crt", names.cert);
    symlinkSync("..data/tls.key", names.key);
    const files = open();
    generation("..2", renewed);
    rmSync(join(folder, "..1"), { recursive: true });
    await expect.poll(() => told.some((line) => inForce.test(line)), { timeout: 20_000 }).toBe(true);
    expect(files.current.key.equals(renewed.key)).toBe(true);
    files.close();
  });
});
