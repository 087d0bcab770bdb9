import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { composeScripts } from "../../../../scripts/compose-scripts.mjs";
import { storedAs } from "../../../keys.js";
import { scriptSources } from "./scripts.generated.js";

const folder = new URL(".", import.meta.url);
const luaFiles = readdirSync(folder).filter((name) => name.endsWith(".lua"));
const sourceOf = (file: string): string => readFileSync(new URL(file, folder), "utf8");

/** Whether a file is the body of an algorithm, or its plain form. */
const isBody = (file: string): boolean => file.replace(/(-plain)?\.lua$/, "") in storedAs;

test("the committed scripts are composed from the Lua files", () => {
  expect(sourceOf("scripts.generated.ts")).toBe(composeScripts());
});

test("every stored form has a Lua body of its name, under its letter", () => {
  for (const [stem, letter] of Object.entries(storedAs)) {
    expect(luaFiles).toContain(`${stem}.lua`);
    expect(scriptSources.decide).toContain(`if letter == '${letter}' then`);
    expect(Object.keys(scriptSources)).toContain(`single-${letter}`);
  }
});

test.each(luaFiles)("%s opens with its purpose", (file) => {
  const [opening] = sourceOf(file).split("]]");
  expect(opening).toMatch(/^--\[\[ [a-z-]+[:,]/);
  if (isBody(file)) expect(opening).toContain("policy  ");
  else if (!/(prelude|age|id-record|packed-layout|grants|grants-head|block-state|hold)\.lua$/.test(file))
    for (const part of ["KEYS", "ARGV", "returns"]) expect(opening).toContain(part);
});

test.each(luaFiles)("%s reads no key by pattern, and leaves none without an expiry", (file) => {
  const body = sourceOf(file);
  expect(body).not.toMatch(/'(KEYS|SCAN|FLUSHDB|FLUSHALL)'/);
  for (const [call] of body.matchAll(/call\('SET',[^\n]*/g)) expect(call).toMatch(/'PX'|'PXAT'|'KEEPTTL'/);
});

test.each(luaFiles.filter((file) => file !== "utilisation.lua"))(
  "%s compares the ends of keys, not the time left",
  (file) => {
    // PTTL reads a clock later than the script's: in the last millisecond of a key, its own refusal seemed to outlive it, and deleted it.
    expect(sourceOf(file)).not.toContain("'PTTL'");
  },
);
