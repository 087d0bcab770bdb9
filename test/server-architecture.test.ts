/**
 * Holds the direction of the service's imports, from the sources themselves, as `architecture.test.ts` does for the library.
 * The administration path never sits on the check path: enforcement sees neither administration nor the database.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readSource } from "../scripts/read-source.mjs";

interface Room {
  readonly name: string;
  /** Paths within packages/server/src. */
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
    files: /^((errors|log|own-fields|own-package|own-text|printable)\.ts$|threads\/)/,
    sees: [],
  },
  { name: "settings", files: /^settings\//, sees: ["ground"] },
  { name: "grpc", files: /^grpc\//, sees: [] },
  { name: "http", files: /^http\//, sees: ["ground"], seesTypesOf: ["settings"] },
  {
    name: "repository",
    files: /^configuration\/repository\//,
    sees: ["ground"],
    seesTypesOf: ["configuration"],
  },
  { name: "recording", files: /^recording\//, sees: ["ground"], seesTypesOf: ["settings"] },
  { name: "instance", files: /^instance\//, sees: ["ground", "recording"], seesTypesOf: ["settings", "monitoring"] },
  { name: "configuration", files: /^configuration\//, sees: ["ground", "repository", "instance"] },
  {
    name: "monitoring",
    files: /^monitoring\//,
    sees: ["ground", "settings", "instance"],
    seesTypesOf: ["configuration"],
  },
  {
    name: "analysis",
    files: /^analysis\//,
    sees: ["ground", "recording", "monitoring"],
    seesTypesOf: ["configuration"],
  },
  {
    name: "enforcement",
    files: /^enforcement\//,
    sees: ["ground", "settings", "http", "grpc"],
    seesTypesOf: ["configuration", "monitoring"],
  },
  {
    name: "administration",
    files: /^administration\//,
    sees: ["ground", "http", "configuration"],
    seesTypesOf: ["repository", "monitoring", "analysis"],
  },
  {
    name: "service",
    files: /^service\//,
    sees: [
      "ground",
      "settings",
      "http",
      "instance",
      "configuration",
      "monitoring",
      "analysis",
      "enforcement",
      "administration",
    ],
  },
  {
    name: "cli",
    files: /^cli\//,
    sees: ["ground", "settings", "http", "configuration", "recording", "analysis", "enforcement", "service"],
    seesTypesOf: ["monitoring"],
  },
];

/** What keeps data, and the only files that may touch it. */
const keepers: Readonly<Record<string, RegExp>> = {
  // The lock of a data folder is SQLite's: Node has none.
  libsql: /^(configuration\/repository\/sqlite-driver|instance\/folder-lock)\.ts$/,
  pg: /^configuration\/repository\/postgres-driver\.ts$/,
  // The library makes every client (`sluice/internal`), so that all are connected alike.
  ioredis: /^$/,
};

const source = fileURLToPath(new URL("../packages/server/src", import.meta.url));
const files = readdirSync(source, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts"))
  .map((entry) => relative(source, join(entry.parentPath, entry.name)).replaceAll("\\", "/"));
const textOf = (file: string) => readFileSync(join(source, file), "utf8");
const importsOf = (file: string) => readSource(file, textOf(file)).imports;
const roomOf = (file: string) => rooms.find((room) => room.files.test(file));

function expectNone(mistakes: readonly string[]): void {
  expect(mistakes, `\n${mistakes.join("\n")}\n`).toEqual([]);
}

test("every room of the table has files", () => {
  expectNone(rooms.filter((room) => !files.some((file) => roomOf(file) === room)).map(({ name }) => name));
});

test("every source file of the service stands in a room of the table", () => {
  expect(files.length).toBeGreaterThan(0);
  expectNone(files.filter((file) => roomOf(file) === undefined));
});

test("no room of the service's table is empty, and none may import a room that does not exist", () => {
  const taken = new Set(files.map((file) => roomOf(file)));
  expectNone(rooms.filter((room) => !taken.has(room)).map(({ name }) => name));
  const named = rooms.flatMap(({ sees, seesTypesOf = [] }) => [...sees, ...seesTypesOf]);
  expectNone(named.filter((name) => !rooms.some((room) => room.name === name)));
});

test("no file of the service imports from a room above its own", () => {
  const mistakes = files.flatMap((file) => {
    const room = roomOf(file)!;
    return importsOf(file).flatMap(({ from, typesOnly }) => {
      if (!from.startsWith(".")) return [];
      const target = posix.join(posix.dirname(file), from).replace(/\.js$/, ".ts");
      const other = roomOf(target);
      if (other === room || other === undefined || room.sees.includes(other.name)) return [];
      if (typesOnly && room.seesTypesOf?.includes(other.name)) return [];
      return [`${file} (${room.name}) imports ${target} (${other.name})`];
    });
  });
  expectNone(mistakes);
});

test("only the repository's drivers touch a database, and nothing here a Redis client of its own making", () => {
  const mistakes = files.flatMap((file) =>
    importsOf(file)
      .map(({ from }) => from.match(/^(@[^/]+\/)?[^/]+/)![0])
      .filter((name) => name in keepers && !keepers[name]!.test(file))
      .map((name) => `${file} imports ${name}`),
  );
  expectNone(mistakes);
});

test("SQL is written only in the repository, and Redis keys only in redis-keys.ts", () => {
  const sql = /\b(SELECT [\w(*]|INSERT INTO|DELETE FROM|CREATE TABLE|UPDATE \w+ SET)/;
  const withSql = files.filter((file) => roomOf(file)!.name !== "repository" && sql.test(textOf(file)));
  const withKeys = files.filter((file) => !file.endsWith("redis-keys.ts") && /["'`]sluice:\d/.test(textOf(file)));
  expectNone([...withSql, ...withKeys]);
});

test("the dashboard takes nothing but types from the service and the library", () => {
  const folder = fileURLToPath(new URL("../packages/dashboard/src", import.meta.url));
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
  expect(sources.length).toBeGreaterThan(0);
  const mistakes = sources.flatMap((file) =>
    readSource(file, readFileSync(join(folder, file), "utf8"))
      .imports.filter(({ from, typesOnly }) => !typesOnly && /^sluice|\/(server|sluice)\//.test(from))
      .map(({ from }) => `${file} imports ${from}`),
  );
  expectNone(mistakes);
});
