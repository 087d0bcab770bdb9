/** Holds docs/architecture.md to the sources: the diagrams, the files of each way, and their counts. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { isShipped, readSourceTree } from "../scripts/source-tree.mjs";
import { withDiagrams } from "../scripts/write-architecture-page.mjs";

const page = readFileSync(new URL("../docs/architecture.md", import.meta.url), "utf8");
const tree = readSourceTree();

test("the diagrams are those of the imports: run `npm run docs:architecture` if not", () => {
  expect(page).toBe(withDiagrams(page, tree));
});

const known = [...tree.keys()].filter(isShipped);
const ways = Array.from(
  page.matchAll(/^### (.+)\n[^`]*(?:`[^`\n]+`[^`]*)*?```\n([\s\S]*?)\n```/gm),
  ([, name, text]) => {
    const [first = "", ...steps] = text!.split(/\s*(→|⇢)\s*/);
    return {
      name: name!,
      first,
      steps: steps.flatMap((step, i) => (i % 2 === 0 ? [] : [{ by: steps[i - 1]!, to: step }])),
    };
  },
);

/** The one file whose path ends so. Scripts of Redis are no sources of TypeScript: their names are enough. */
function fileOf(suffix: string): string {
  if (suffix.endsWith(".lua")) return suffix;
  const found = known.filter((file) => file.endsWith(`/${suffix}`));
  expect(found, `files that end in ${suffix}`).toHaveLength(1);
  return found[0]!;
}

function areLinked(one: string, other: string): boolean {
  const imports = (from: string, to: string) => tree.get(from)!.imports.some(({ target }) => target === to);
  // The service reaches the library through its entry points.
  const crosses = one.split("/")[1] !== other.split("/")[1];
  const viaPackage = (from: string, to: string) =>
    tree.get(from)!.imports.some(({ from: name }) => name.split("/")[0] === to.split("/")[1]);
  return imports(one, other) || imports(other, one) || (crosses && (viaPackage(one, other) || viaPackage(other, one)));
}

test("there are seven ways", () => {
  expect(ways).toHaveLength(7);
});

test.each(ways)("$name: every file exists, and every call follows an import", ({ first, steps }) => {
  let from = fileOf(first);
  for (const { by, to: suffix } of steps) {
    const to = fileOf(suffix);
    if (by === "→") expect(areLinked(from, to), `${from} -> ${to}`).toBe(true);
    from = to;
  }
});

test.each(ways)("$name: the table has its files and hops", ({ name, first, steps }) => {
  const row = page.split("\n").find((line) => line.startsWith(`| ${name} |`));
  const [, , files, hops] = row!.split("|").slice(2).map(Number);
  expect([files, hops]).toEqual([new Set([first, ...steps.map(({ to }) => to)]).size, steps.length]);
});
