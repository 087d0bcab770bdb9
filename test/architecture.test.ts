/**
 * Holds the direction of the imports and the names of files, from the sources themselves.
 * The two tables are the architecture: a new room or a new package is written there first, on purpose.
 */
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, posix, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readSource } from "../scripts/read-source.mjs";

interface Room {
  readonly name: string;
  /** Paths within the package's src. */
  readonly files: RegExp;
  /** Rooms that may be imported, beside its own. */
  readonly sees: readonly string[];
  /** Rooms of which only types may be imported. */
  readonly seesTypesOf?: readonly string[];
}

/** From the ground up. */
const rooms: readonly Room[] = [
  {
    name: "ground",
    files: /^(decision|errors|key-prefix|keys|check|sole-request|time-slices)\.ts$/,
    sees: [],
    seesTypesOf: ["algorithms"],
  },
  { name: "algorithms", files: /^algorithms\//, sees: ["ground"] },
  { name: "rules", files: /^rules\//, sees: ["ground", "algorithms"] },
  // Decides in process, before counters; time and chance are arguments.
  { name: "shedding", files: /^shedding\//, sees: ["ground", "rules"] },
  // The contract of a store, and what both stores use. The stores do not see each other.
  {
    name: "store",
    files: /^store\/[^/]+$/,
    sees: ["ground"],
    seesTypesOf: ["algorithms", "rules", "memory store"],
  },
  { name: "memory store", files: /^store\/memory\//, sees: ["ground", "algorithms", "store"] },
  { name: "redis store", files: /^store\/redis\//, sees: ["ground", "algorithms", "store"] },
  // Holds units of a store for this process.
  { name: "prefetch", files: /^prefetch\//, sees: ["algorithms", "store"], seesTypesOf: ["ground"] },
  // Units that are held until the real cost is known.
  {
    name: "reservations",
    files: /^reservations\//,
    sees: ["ground", "algorithms", "rules", "store"],
  },
  // Stands between instances and two stores.
  { name: "regions", files: /^regions\//, sees: ["ground", "algorithms", "store"], seesTypesOf: ["rules"] },
  {
    name: "limiter",
    files: /^limiter\//,
    sees: ["ground", "algorithms", "rules", "memory store", "prefetch", "shedding", "reservations", "regions"],
    seesTypesOf: ["store"],
  },
  {
    name: "http",
    files: /^http(\.ts$|\/)/,
    sees: ["ground", "rules", "limiter"],
    seesTypesOf: ["algorithms"],
  },
  {
    name: "middleware",
    files: /^middleware\//,
    sees: ["ground", "rules", "limiter", "http"],
    seesTypesOf: ["store"],
  },
  // Runs in browsers too, so it shares types with the library and no code.
  { name: "client", files: /^client\//, sees: [], seesTypesOf: ["ground", "rules"] },
  {
    name: "entry points",
    files: /^(index|redis|internal|testing|client)\.ts$/,
    sees: ["ground", "rules", "memory store", "redis store", "limiter", "http", "client", "shedding", "regions"],
    seesTypesOf: ["store", "prefetch", "reservations"],
  },
];

/** Packages from npm, and the files of packages/sluice/src that may import them. */
const packagesFromNpm: Readonly<Record<string, RegExp>> = {
  ioredis: /^(store\/redis|internal)/,
  express: /^middleware\/express/,
  "express-rate-limit": /^middleware\/express-rate-limit/,
  fastify: /^middleware\/fastify/,
  hono: /^middleware\/hono/,
  koa: /^middleware\/koa/,
  "@nestjs/common": /^middleware\/nest/,
  "@nestjs/core": /^middleware\/nest/,
};

const root = fileURLToPath(new URL("..", import.meta.url));
const library = join(root, "packages", "sluice", "src");
const isTest = (file: string) => /\.(test|bench)\.tsx?$/.test(file);

/** Code files under a folder of the repository, with "/" on every system; none if it does not exist. */
function codeFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|tsx|mjs|lua)$/.test(entry.name))
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
      .filter((file) => !/(^|\/)(node_modules|dist)\//.test(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

const sources = codeFiles(library).filter((file) => file.endsWith(".ts") && !isTest(file));
const importsOf = (file: string) => readSource(file, readFileSync(join(library, file), "utf8")).imports;

/** Every source file of every package, tests apart: where it is, and its text. */
const allSources = readdirSync(join(root, "packages")).flatMap((name) =>
  codeFiles(join(root, "packages", name, "src"))
    .filter((file) => !isTest(file))
    .map((file) => ({ file: `packages/${name}/src/${file}`, stem: basename(file).split(".")[0]! }))
    .map((source) => ({ ...source, text: readFileSync(join(root, source.file), "utf8") })),
);

function expectNone(mistakes: readonly string[]): void {
  expect(mistakes, `\n${mistakes.join("\n")}\n`).toEqual([]);
}

test("every source file stands in a room of the table", () => {
  expect(sources.length).toBeGreaterThan(0);
  const homeless = sources.filter((file) => !rooms.some((room) => room.files.test(file)));
  expectNone(homeless.map((file) => `${file} is in no room: move it, or give it a place`));
});

test("every room of the table has files, and every permission is used", () => {
  const roomOf = (file: string) => rooms.find((room) => room.files.test(file))?.name;
  const imports = sources.flatMap((file) =>
    importsOf(file)
      .filter(({ from }) => from.startsWith("."))
      .map(({ from, typesOnly }) => {
        const target = posix.join(posix.dirname(file), from).replace(/\.js$/, ".ts");
        return `${roomOf(file)} ${typesOnly ? "types of" : "sees"} ${roomOf(target)}`;
      }),
  );
  const used = new Set(imports);
  const unused = rooms.flatMap(({ name, sees, seesTypesOf = [] }) => [
    ...(sources.some((file) => roomOf(file) === name) ? [] : [`${name} has no files`]),
    ...sees.filter((other) => !used.has(`${name} sees ${other}`)).map((other) => `${name} need not see ${other}`),
    ...seesTypesOf
      .filter((other) => !used.has(`${name} types of ${other}`))
      .map((other) => `${name} need not see types of ${other}`),
  ]);
  const packages = new Set(sources.flatMap((file) => importsOf(file).map(({ from }) => from)));
  const absent = Object.keys(packagesFromNpm).filter(
    (name) => ![...packages].some((from) => from === name || from.startsWith(`${name}/`)),
  );
  expectNone([...unused, ...absent.map((name) => `${name} is imported nowhere`)]);
});

test("no room of the table is empty, and none may import a room that does not exist", () => {
  expectNone(rooms.filter((room) => !sources.some((file) => room.files.test(file))).map(({ name }) => name));
  const named = rooms.flatMap(({ sees, seesTypesOf = [] }) => [...sees, ...seesTypesOf]);
  expectNone(named.filter((name) => !rooms.some((room) => room.name === name)));
});

test("no file imports from a room above its own", () => {
  const roomOf = (file: string) => rooms.find((room) => room.files.test(file));
  const mistakes = sources.flatMap((file) => {
    const room = roomOf(file);
    if (room === undefined) return [];
    return importsOf(file).flatMap(({ from, typesOnly }) => {
      if (!from.startsWith(".")) return [];
      const target = posix.join(posix.dirname(file), from).replace(/\.js$/, ".ts");
      const other = roomOf(target);
      if (other === undefined) return [`${file} imports ${target}, which is in no room`];
      const seen = other === room || room.sees.includes(other.name);
      if (seen || (typesOnly && room.seesTypesOf?.includes(other.name))) return [];
      const allowed = ["its own", ...room.sees, ...(room.seesTypesOf ?? []).map((name) => `types of ${name}`)].join(
        ", ",
      );
      return [`${file} (${room.name}) imports ${target} (${other.name}); it may import from: ${allowed}`];
    });
  });
  expectNone(mistakes);
});

test("packages from npm are imported only where the table says, and only the Redis store touches a Redis client", () => {
  const mistakes = sources.flatMap((file) =>
    importsOf(file)
      .map(({ from }) => from)
      .filter((from) => !from.startsWith(".") && !from.startsWith("node:"))
      .map((from) => from.match(/^(@[^/]+\/)?[^/]+/)![0])
      .filter((name) => !packagesFromNpm[name]?.test(file))
      .map(
        (name) => `${file} imports ${name}; allowed for: ${packagesFromNpm[name] ?? "no file, it is not in the table"}`,
      ),
  );
  expectNone(mistakes);
});

test("the environment is read only by settings", () => {
  const readers = allSources.filter(({ text, stem }) => /\bprocess\.env\b/.test(text) && !stem.endsWith("settings"));
  expectNone(readers.map(({ file }) => `${file} reads process.env; take a setting instead`));
});

test("nothing is exported by default, and the library's entry points name all that they export", () => {
  const mistakes = allSources.flatMap(({ file, text }) => {
    const found: string[] = [];
    if (/^export default\b|^export \{[^}]*\bas default\b/m.test(text)) found.push(`${file} has a default export`);
    const isEntry = dirname(file) === "packages/sluice/src";
    if (isEntry && /^export \*/m.test(text)) found.push(`${file} exports *; name what is public`);
    return found;
  });
  expectNone(mistakes);
});

test("no file or folder is named after nothing in particular", () => {
  const vague = /^(utils?|helpers?|managers?|libs?|common|misc)$/;
  const mistakes = ["packages", "test", "scripts", "bench"].flatMap((folder) =>
    codeFiles(join(root, folder))
      .filter((file) =>
        file.split("/").some((part) =>
          part
            .split(".")[0]!
            .split("-")
            .some((word) => vague.test(word)),
        ),
      )
      .map((file) => `${folder}/${file}: say what is in it`),
  );
  expectNone(mistakes);
});
