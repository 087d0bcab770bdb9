/**
 * What must hold before a version is published, and the list of what a package is made of. Pure: texts in, sentences or objects out.
 */

/**
 * @typedef {object} ReleaseState
 * @property {Readonly<Record<string, string>>} versions by package
 * @property {string} changelog
 * @property {readonly string[]} tags
 * @property {readonly string[]} changedFiles that git has not committed
 * @property {Readonly<Record<string, string | undefined>>} repositories by published package: where its source is
 * @property {boolean} hasStoredLayout the test that reads this version's stored data in the future has its data
 */

/**
 * @param {ReleaseState} state
 * @returns {string[]} why the version must not be published; empty if it may
 */
export function releaseProblems({ versions, changelog, tags, changedFiles, repositories, hasStoredLayout }) {
  const distinct = [...new Set(Object.values(versions))];
  const version = distinct[0] ?? "";
  const problems = [];
  if (distinct.length !== 1) {
    const told = Object.entries(versions).map(([name, one]) => `${name} ${one}`);
    problems.push(`the packages have several versions: ${told.join(", ")}`);
  }
  if (!/^\d+\.\d+\.\d+(-[\da-z.]+)?$/i.test(version))
    problems.push(`${version} is no version: expected 1.2.3 or 1.2.3-rc.1`);
  const heading = changelog.split("\n").find((line) => line === `## ${version}` || line.startsWith(`## ${version} `));
  if (heading === undefined) problems.push(`CHANGELOG.md has no section "## ${version} (DATE)"`);
  else if (!/ \(\d{4}-\d\d-\d\d\)$/.test(heading)) problems.push(`CHANGELOG.md: "${heading}" has no date`);
  else if (notesOf(changelog, version).trim() === "") problems.push(`CHANGELOG.md: "${heading}" is empty`);
  if (tags.includes(`v${version}`)) problems.push(`v${version} was released already: raise the version`);
  if (changedFiles.length > 0)
    problems.push(`git has changes that are not committed: ${changedFiles.slice(0, 5).join(", ")}`);
  const homeless = Object.keys(repositories).filter((name) => !repositories[name]);
  // npm would refuse the upload, after the first package is out.
  if (homeless.length > 0) {
    const workspaces = homeless.map((name) => `-w ${name}`).join(" ");
    problems.push(
      `${homeless.join(" and ")}: no "repository" in package.json, which provenance needs: \`npm pkg set repository.url=git+https://… ${workspaces}\``,
    );
  }
  if (!hasStoredLayout) problems.push(`test/released has no data of ${version}: \`npm run release -- --write-layout\``);
  return problems;
}

/**
 * The changelog's section of a version: its release notes.
 * @param {string} changelog
 * @param {string} version
 */
export function notesOf(changelog, version) {
  const lines = changelog.split("\n");
  const from = lines.findIndex((line) => line === `## ${version}` || line.startsWith(`## ${version} `));
  if (from < 0) return "";
  const length = lines.slice(from + 1).findIndex((line) => line.startsWith("## "));
  return lines.slice(from + 1, length < 0 ? undefined : from + 1 + length).join("\n");
}

/** @typedef {{ name: string, version: string, license: string }} Bundled */

/**
 * The packages that notices beside a bundle list: `fastify 5.12.8 (MIT)`, or Vite's `## react - 19.3.1 (MIT)`.
 * @param {string} notices
 * @returns {Bundled[]}
 */
export function bundledPackages(notices) {
  const found = notices.matchAll(/^(?:## )?((?:@[\w.-]+\/)?[\w.-]+)(?: -)? (\d+\.\d+\.\d+[\w.+-]*) \(([^()]+)\)$/gm);
  return Array.from(found, ([, name = "", version = "", license = ""]) => ({ name, version, license }));
}

/**
 * npm's own list of an installed package, made that of the package itself, with the code that is bundled in it.
 * @param {any} sbom CycloneDX, of a project whose one dependency is the package
 * @param {{ name: string, version: string, bundled: readonly Bundled[] }} about
 */
export function completeSbom(sbom, { name, version, bundled }) {
  const reference = `${name}@${version}`;
  const own = sbom.components.find((/** @type {any} */ one) => one.name === name && one.version === version);
  const others = sbom.components.filter((/** @type {any} */ one) => one !== own);
  const listed = new Set(others.map((/** @type {any} */ one) => `${one.name}@${one.version}`));
  const added = bundled
    .filter((one) => !listed.has(`${one.name}@${one.version}`))
    .map((one) => ({
      "bom-ref": `${one.name}@${one.version}`,
      type: "library",
      name: one.name,
      version: one.version,
      purl: `pkg:npm/${one.name.replace("@", "%40")}@${one.version}`,
      properties: [{ name: "cdx:npm:package:bundled", value: "true" }],
      licenses: [{ license: { id: one.license } }],
    }));
  return {
    ...sbom,
    metadata: { ...sbom.metadata, component: { ...own, "bom-ref": reference, type: "application" } },
    components: [...others, ...added],
    dependencies: sbom.dependencies
      .filter((/** @type {any} */ one) => listed.has(one.ref) || one.ref === reference)
      .map((/** @type {any} */ one) =>
        one.ref === reference ? { ...one, dependsOn: [...one.dependsOn, ...added.map((add) => add["bom-ref"])] } : one,
      ),
  };
}
