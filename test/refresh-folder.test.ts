/** A build beside a running service: what runs from `dist` never meets a folder that is gone or half written. */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { refreshFolder } from "../scripts/refresh-folder.mjs";
import { makeTempFolder } from "./harness/leash.js";

const before = { "kept.js": "kept", "changed.js": "old", "gone.js": "gone", "deep/kept.js": "deep" };
const after = { "kept.js": "kept", "changed.js": "new", "deep/kept.js": "deep", "deep/added.js": "added" };

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

function read(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    names.map((entry) => {
      const file = join(entry.parentPath, entry.name);
      return [file.slice(folder.length + 1), readFileSync(file, "utf8")];
    }),
  );
}

test("a folder stays whole while it is built again, and then holds the new files; those that did not change are left alone", async () => {
  const root = makeTempFolder("refresh");
  const folder = join(root, "dist");
  write(folder, before);
  const inode = statSync(join(folder, "kept.js")).ino;
  const code = await refreshFolder(folder, async (into: string) => {
    expect(read(folder)).toEqual(before);
    write(into, after);
    expect(read(folder)).toEqual(before);
    return 0;
  });
  expect(code).toBe(0);
  expect(read(folder)).toEqual(after);
  expect(statSync(join(folder, "kept.js")).ino).toBe(inode);
  expect(readdirSync(root)).toEqual(["dist"]);
});

test("a build that fails changes nothing", async () => {
  const root = makeTempFolder("refresh");
  const folder = join(root, "dist");
  write(folder, before);
  const code = await refreshFolder(folder, async (into: string) => {
    write(into, { "half.js": "half" });
    return 1;
  });
  expect(code).toBe(1);
  expect(read(folder)).toEqual(before);
  expect(readdirSync(root)).toEqual(["dist"]);
});
