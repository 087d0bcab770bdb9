/**
 * Holds what a reviewer would otherwise have to look for: long functions, dead exports, unused dependencies, import cycles.
 * It reads the parsed sources (scripts/source-tree.mjs), as the architecture tests do. An exception stands here with its reason.
 */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { serviceErrors } from "../packages/server/src/errors.js";
import { errorKinds } from "../packages/sluice/src/errors.js";
import { isShipped, isTestFile, packageEntries, readManifest, readSourceTree } from "../scripts/source-tree.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const tree = readSourceTree();
const sources = [...tree.values()];
const shipped = sources.filter(({ file }) => isShipped(file));

function expectNone(mistakes: readonly string[]): void {
  expect(mistakes, `\n${mistakes.join("\n")}\n`).toEqual([]);
}

test("the sources are found, and relative imports lead to files", () => {
  expect(shipped.length).toBeGreaterThan(300);
  const lost = sources.flatMap(({ file, imports }) =>
    imports
      .filter(({ from, target }) => /^\..*\.js$/.test(from) && target === undefined)
      .map(({ from }) => `${file} imports ${from}, which is no file`),
  );
  expectNone(lost);
});

const MOST_LINES = 80;

test(`no function is longer than ${MOST_LINES} lines`, () => {
  const long = sources
    .filter(({ file }) => /^(packages\/[a-z]+\/src|scripts|bench)\//.test(file) && !isTestFile(file))
    .flatMap(({ file, functions }) =>
      functions
        .filter(({ lines }) => lines > MOST_LINES)
        .map(({ name, line, lines }) => `${file}:${line} ${name} has ${lines} lines`),
    );
  expectNone(long);
});

test("every runtime dependency is imported by code that ships, not only by tests", () => {
  const mistakes = readdirSync(`${root}packages`).flatMap((folder) => {
    const { dependencies = {} } = readManifest(`packages/${folder}/package.json`);
    const imported = new Set(
      shipped
        .filter(({ file }) => file.startsWith(`packages/${folder}/`))
        .flatMap(({ imports }) => imports.filter(({ typesOnly }) => !typesOnly))
        .map(({ from }) => from.match(/^(@[^/]+\/)?[^/]+/)![0]),
    );
    return Object.keys(dependencies)
      .filter((name) => !imported.has(name))
      .map((name) => `packages/${folder} depends on ${name}, which no source imports at run time`);
  });
  expectNone(mistakes);
});

test("the console has no import cycle, neither between files nor between folders", () => {
  const folder = "packages/dashboard/src/";
  const own = shipped.filter(({ file }) => file.startsWith(folder));
  const targets = (file: string) =>
    tree.get(file)!.imports.flatMap(({ target }) => (target?.startsWith(folder) ? [target] : []));
  const room = (file: string) => file.slice(folder.length).split("/").slice(0, -1)[0] ?? file;
  const rooms = new Map<string, string[]>();
  for (const { file } of own) {
    const others = targets(file).map(room);
    rooms.set(room(file), [...(rooms.get(room(file)) ?? []), ...others.filter((other) => other !== room(file))]);
  }
  expectNone([
    ...findCycles(
      own.map(({ file }) => file),
      targets,
    ),
    ...findCycles([...rooms.keys()], (name) => rooms.get(name)!),
  ]);
});

/** Depth first: an edge to a node that is still being visited closes a cycle. */
function findCycles(nodes: readonly string[], next: (node: string) => readonly string[]): string[] {
  const done = new Set<string>();
  const path: string[] = [];
  const cycles: string[] = [];
  const visit = (node: string): void => {
    if (done.has(node)) return;
    const start = path.indexOf(node);
    if (start !== -1) {
      cycles.push([...path.slice(start), node].join(" -> "));
      return;
    }
    path.push(node);
    for (const other of next(node)) visit(other);
    path.pop();
    done.add(node);
  };
  for (const node of nodes) visit(node);
  return cycles;
}

test("the search for cycles finds one of two and one of three nodes, and none in a diamond", () => {
  const graph = (edges: Readonly<Record<string, readonly string[]>>) =>
    findCycles(Object.keys(edges), (node) => edges[node] ?? []);
  expect(graph({ a: ["b"], b: ["a"] })).toEqual(["a -> b -> a"]);
  expect(graph({ a: ["b"], b: ["c"], c: ["b"] })).toEqual(["b -> c -> b"]);
  expect(graph({ a: ["b", "c"], b: ["d"], c: ["d"], d: [] })).toEqual([]);
});

/** Entry points that programs outside this repository import. `sluice/internal` serves the service alone. */
const publicEntries = new Set(
  [...packageEntries()].flatMap(([name, file]) => (name === "sluice/internal" ? [] : [file])),
);

test("every exported name has an importer", () => {
  const imported = new Set(
    sources.flatMap(({ imports }) => imports.flatMap(({ target, names }) => names.map((name) => `${target} ${name}`))),
  );
  const unused = shipped
    .filter(({ file }) => !publicEntries.has(file))
    .flatMap(({ file, exports }) =>
      exports
        .filter(({ name }) => !imported.has(`${file} ${name}`) && !imported.has(`${file} *`))
        .map(({ name }) => `${file} exports ${name}, which no file imports`),
    );
  expectNone(unused);
});

/** Modules that compute and touch nothing outside the process. */
const pureModules = /^(node:(crypto|net|path|url|util|buffer)|yaml|typebox(\/.*)?)$/;
const impureNames =
  /^(setTimeout|setInterval|setImmediate|fetch|process|performance|EventSource|document|sessionStorage|localStorage|Promise)$/;

/** Files that compute nothing by themselves, and the test that runs them. */
const testedElsewhere: Readonly<Record<string, string>> = {
  "packages/server/src/http/allowed-methods.ts": "listens to Fastify's routes: test/service/http-api.test.ts",
};

/** Fewer lines than this are tested through their callers. */
const WORTH_A_TEST = 20;

test("every pure file has a test beside it", () => {
  const verdicts = new Map<string, boolean>();
  const isPure = (file: string): boolean => {
    const known = verdicts.get(file);
    if (known !== undefined) return known;
    // A cycle adds nothing: the file that closes it is judged by its own lines.
    verdicts.set(file, true);
    const { text, imports, identifiers, functions } = tree.get(file)!;
    const verdict =
      !/\bDate\.now\b|\bnew Date\(\)/.test(text) &&
      !functions.some(({ isAsync }) => isAsync) &&
      ![...identifiers.keys()].some((name) => impureNames.test(name)) &&
      imports
        .filter(({ typesOnly }) => !typesOnly)
        .every(({ from, target }) => (target === undefined ? pureModules.test(from) : isPure(target)));
    verdicts.set(file, verdict);
    return verdict;
  };
  const untested = shipped
    .filter(({ file }) => /^packages\/(dashboard|server|sluice)\//.test(file) && file.endsWith(".ts") && isPure(file))
    .filter(({ exports, functions }) => {
      const lines = functions.reduce((sum, one) => sum + one.lines, 0);
      return lines >= WORTH_A_TEST && exports.some(({ isType }) => !isType);
    })
    .filter(({ file }) => !tree.has(file.replace(/\.ts$/, ".test.ts")) && !(file in testedElsewhere))
    .map(({ file }) => `${file} is pure and has no test beside it`);
  const stale = Object.keys(testedElsewhere).filter((file) => !tree.has(file) || !isPure(file));
  expectNone([...untested, ...stale.map((file) => `${file} needs no exception`)]);
});

/** Every string literal of the shipped sources and of the Lua scripts, by file. */
const literals = new Map(
  shipped.map(({ file, text }) => {
    // A route that documents an error does not make it.
    const made = text.replace(/\berrors: \[[^\]]*\]/g, "");
    return [file, new Set(Array.from(made.matchAll(/"([a-z-]+)"/g), ([, value]) => value!))];
  }),
);

/** Where a value is listed, not made: tables of labels, schemas, documentation, wordings. */
const listings =
  /\/(errors|views|schemas|stats-schemas|openapi-document|problem-schema|decision-counts|wire|decision)\.ts$|^packages\/sluice\/src\/http\//;

function isMade(value: string, declaredIn: string): boolean {
  return [...literals].some(([file, values]) => file !== declaredIn && !listings.test(file) && values.has(value));
}

/** Values of the public contract that nothing makes yet, with the reason. */
const notMadeYet: Readonly<Record<string, string>> = {};

test("every error code, reason, event and kind of alert is made somewhere", () => {
  const union = (file: string, name: string) => {
    const text = new RegExp(`type ${name} =([^;]+);`).exec(tree.get(file)!.text)![1]!;
    return Array.from(text.matchAll(/"([a-z-]+)"/g), ([, value]) => ({ value: value!, file }));
  };
  const codes = [
    ...Object.keys(errorKinds).map((value) => ({ value, file: "packages/sluice/src/errors.ts" })),
    ...Object.values(serviceErrors)
      .flatMap(Object.keys)
      .map((value) => ({ value, file: "packages/server/src/errors.ts" })),
  ];
  const events = Array.from(
    tree.get("packages/sluice/src/limiter/limiter-events.ts")!.text.matchAll(/^ {2}(?:readonly )?"?([a-z]+)"?: \[/gm),
    ([, value]) => ({ value: value!, file: "packages/sluice/src/limiter/limiter-events.ts" }),
  );
  const values = [
    ...codes,
    ...events,
    ...union("packages/sluice/src/decision.ts", "Reason"),
    ...union("packages/server/src/monitoring/views/alerts.ts", "AlertKind"),
  ];
  expect(codes.length).toBeGreaterThan(20);
  expect(events.length).toBeGreaterThan(3);
  expectNone(
    values
      .filter(({ value, file }) => !isMade(value, file) && !(value in notMadeYet))
      .map(({ value, file }) => `${file} declares ${JSON.stringify(value)}, which nothing makes`),
  );
  expectNone(Object.keys(notMadeYet).filter((value) => isMade(value, "packages/sluice/src/decision.ts")));
});
