/**
 * `npm run release -- --dry-run`: a release, all but the upload. Out, in `release/` or `--out DIR`: the tarballs, an SBOM (CycloneDX) for each,
 * the release notes, SHA256SUMS. Without `--dry-run` the tarballs are then published and the commit is tagged; whatever
 * is not ready stops it before anything is written. `--no-build` takes what is built; `--write-layout` stores this version's layouts of
 * stored data under test/released, for the test that later versions must pass.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { bundledPackages, completeSbom, notesOf, releaseProblems } from "./release-checks.mjs";
import { root, run } from "./run-command.mjs";

const { values: options } = parseArgs({
  options: {
    "dry-run": { type: "boolean", default: false },
    "no-build": { type: "boolean", default: false },
    "write-layout": { type: "boolean", default: false },
    out: { type: "string", default: "release" },
  },
});

const published = { sluice: "packages/sluice", "sluice-server": "packages/server" };

/** @param {string} file */
const readJson = (file) => JSON.parse(readFileSync(join(root, file), "utf8"));

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {string} [cwd]
 */
async function must(command, args, cwd = root) {
  const { code, output } = await run({ command, args, cwd, capture: true });
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} failed:\n${output}`);
  return output;
}

/** @param {string} version */
async function problems(version) {
  const manifests = ["package.json", ...Object.values(published).map((folder) => `${folder}/package.json`)];
  return releaseProblems({
    versions: Object.fromEntries(manifests.map((file) => [readJson(file).name, readJson(file).version])),
    changelog: readFileSync(join(root, "CHANGELOG.md"), "utf8"),
    tags: (await must("git", ["tag", "--list"])).split("\n"),
    changedFiles: (await must("git", ["status", "--porcelain"])).split("\n").filter(Boolean),
    repositories: Object.fromEntries(
      Object.entries(published).map(([name, folder]) => {
        const { repository } = readJson(`${folder}/package.json`);
        return [name, typeof repository === "string" ? repository : repository?.url];
      }),
    ),
    hasStoredLayout: existsSync(join(root, "test", "released", `${version}.sql`)),
  });
}

/** @param {string} out */
async function pack(out) {
  const folders = Object.values(published).map((folder) => join(root, folder));
  // npm packs the same files to the same bytes, whenever and wherever.
  const names = await must("npm", ["pack", ...folders, "--ignore-scripts", "--silent", "--pack-destination", out]);
  const files = names.split("\n").filter((line) => line.endsWith(".tgz"));
  return files.map((file) => join(out, basename(file)));
}

/**
 * @param {string} tarball
 * @param {{ name: string, version: string, folder: string }} about
 */
async function writeSbom(tarball, { name, version, folder }) {
  const project = join(tmpdir(), `sluice-sbom-${process.pid}-${name}`);
  mkdirSync(project, { recursive: true });
  try {
    writeFileSync(join(project, "package.json"), '{ "name": "sbom", "version": "0.0.0", "private": true }');
    const quietly = [
      "--package-lock-only",
      "--ignore-scripts",
      "--prefer-offline",
      "--no-audit",
      "--no-fund",
      "--silent",
    ];
    await must("npm", ["install", tarball, ...quietly], project);
    const listed = await must(
      "npm",
      ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--silent"],
      project,
    );
    const notices = ["bundle/THIRD-PARTY-NOTICES.txt", "console/THIRD-PARTY-NOTICES.md"]
      .map((file) => join(root, folder, file))
      .filter(existsSync);
    const bundled = notices.flatMap((file) => bundledPackages(readFileSync(file, "utf8")));
    // npm may print warnings before the document.
    const sbom = completeSbom(JSON.parse(listed.slice(listed.indexOf("{"))), { name, version, bundled });
    writeFileSync(tarball.replace(/\.tgz$/, ".cdx.json"), `${JSON.stringify(sbom, null, 2)}\n`);
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

/** @param {string} out */
function writeChecksums(out) {
  const lines = readdirSync(out)
    .filter((file) => file !== "SHA256SUMS")
    .sort()
    .map(
      (file) =>
        `${createHash("sha256")
          .update(readFileSync(join(out, file)))
          .digest("hex")}  ${file}\n`,
    );
  writeFileSync(join(out, "SHA256SUMS"), lines.join(""));
}

/** @param {{ version: string, tarballs: readonly string[] }} release */
async function publish({ version, tarballs }) {
  // The library first: who installs the service on the same day finds both.
  for (const tarball of tarballs) await must("npm", ["publish", tarball]);
  await must("git", ["tag", "--annotate", `v${version}`, "--message", `Sluice ${version}`]);
  console.log(`published; push the tag: git push origin v${version}`);
}

const { version } = readJson("package.json");
if (options["write-layout"]) {
  const { writeStoredLayout } = await import("./write-stored-layout.mjs");
  console.log(`wrote ${await writeStoredLayout(version)}`);
} else {
  const found = await problems(version);
  for (const problem of found) console.log(`${options["dry-run"] ? "would stop" : "stop"}: ${problem}`);
  if (found.length > 0 && !options["dry-run"]) process.exit(1);
  if (!options["no-build"]) await must(process.execPath, ["scripts/build.mjs"]);

  const out = resolve(options.out);
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const tarballs = await pack(out);
  for (const [at, [name, folder]] of Object.entries(published).entries()) {
    await writeSbom(/** @type {string} */ (tarballs[at]), { name, version, folder });
  }
  writeFileSync(
    join(out, "NOTES.md"),
    `${notesOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version).trim()}\n`,
  );
  writeChecksums(out);
  console.log(readFileSync(join(out, "SHA256SUMS"), "utf8").trimEnd());
  if (options["dry-run"]) console.log(`dry run: ${version} is in ${out}; nothing was published`);
  else await publish({ version, tarballs });
}
