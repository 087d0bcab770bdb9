/** `npm run release -- --dry-run`: what it writes, what it is made of, and what would stop it. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bundledPackages, notesOf, releaseProblems } from "../../scripts/release-checks.mjs";
import { root, run } from "../../scripts/run-command.mjs";
import { makeTempFolder } from "../harness/leash.js";

const changelog = "# Changelog\n\n## 1.2.0 (2026-11-16)\n\n- New.\n\n## 1.1.0 (2026-01-01)\n\n- Old.\n";
const ready = {
  versions: { sluice: "1.2.0", "sluice-server": "1.2.0" },
  changelog,
  tags: ["v1.1.0"],
  changedFiles: [],
  repositories: { sluice: "git+https://git.example/sluice.git", "sluice-server": "git+https://git.example/sluice.git" },
  hasStoredLayout: true,
};

describe("a release is stopped", () => {
  test("by nothing, where everything is ready", () => {
    expect(releaseProblems(ready)).toEqual([]);
  });

  test.each([
    ["by versions that differ", { versions: { sluice: "1.2.0", "sluice-server": "1.1.0" } }, /several versions/],
    ["by a version that is none", { versions: { sluice: "1.2" } }, /is no version/],
    ["by a changelog that does not know it", { versions: { sluice: "1.3.0" } }, /no section/],
    ["by a section without a date", { changelog: "## 1.2.0 (unreleased)\n\n- New.\n" }, /has no date/],
    ["by a section without a word", { changelog: "## 1.2.0 (2026-11-16)\n\n## 1.1.0\n- Old.\n" }, /is empty/],
    ["by a tag that is taken", { tags: ["v1.2.0"] }, /released already/],
    ["by changes that are not committed", { changedFiles: [" M README.md"] }, /not committed/],
    [
      "by a manifest that does not say where its source is, which provenance needs",
      { repositories: { ...ready.repositories, "sluice-server": undefined } },
      /^sluice-server: no "repository" in package\.json.*npm pkg set repository\.url=\S+ -w sluice-server`$/,
    ],
    ["by stored data that no later test could read", { hasStoredLayout: false }, /test\/released/],
  ])("%s", (_why, changes, expected) => {
    expect(releaseProblems({ ...ready, ...changes } as typeof ready).join("\n")).toMatch(expected);
  });
});

test("the notes are the version's own section, also for the last one", () => {
  expect(notesOf(changelog, "1.2.0").trim()).toBe("- New.");
  expect(notesOf(changelog, "1.1.0").trim()).toBe("- Old.");
  expect(notesOf(changelog, "1.1")).toBe("");
});

test("packages are found in both kinds of notices", () => {
  const notices = "fastify 5.12.8 (MIT)\n\nThe MIT Licence (MIT)\n\n## @tanstack/query-core - 5.107.1 (MIT)\n";
  expect(bundledPackages(notices).map(({ name, version }) => `${name}@${version}`)).toEqual([
    "fastify@5.12.8",
    "@tanstack/query-core@5.107.1",
  ]);
});

test("a dry run writes tarballs, what they are made of, notes and checksums that hold, and publishes nothing", async () => {
  const out = join(makeTempFolder("release"), "of today");
  const args = ["scripts/release.mjs", "--dry-run", "--no-build", "--out", out];
  const { code, output } = await run({ command: process.execPath, args, capture: true });
  expect(output).toContain("nothing was published");
  // The project has no public address yet: a release without --dry-run stops here.
  expect(output).toContain('would stop: sluice and sluice-server: no "repository" in package.json');
  expect(code).toBe(0);
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const both = ["sluice", "sluice-server"].flatMap((name) => [`${name}-${version}.cdx.json`, `${name}-${version}.tgz`]);
  expect(readdirSync(out).sort()).toEqual(["NOTES.md", "SHA256SUMS", ...both].sort());
  execFileSync("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: out });

  const sbom = JSON.parse(readFileSync(join(out, `sluice-server-${version}.cdx.json`), "utf8"));
  expect(sbom).toMatchObject({ bomFormat: "CycloneDX", metadata: { component: { name: "sluice-server", version } } });
  const names: string[] = sbom.components.map((one: { name: string }) => one.name);
  // Installed beside it, bundled in the service, bundled in the console.
  expect(names).toEqual(expect.arrayContaining(["pg", "libsql", "fastify", "ioredis", "react-dom"]));
  for (const tool of ["vitest", "typescript", "@biomejs/biome", "sluice-server"]) expect(names).not.toContain(tool);
  const references = new Set(sbom.components.map((one: { "bom-ref": string }) => one["bom-ref"]));
  const missing = sbom.dependencies.flatMap(({ dependsOn }: { dependsOn: string[] }) =>
    dependsOn.filter((reference) => !references.has(reference)),
  );
  expect(missing).toEqual([]);
});
