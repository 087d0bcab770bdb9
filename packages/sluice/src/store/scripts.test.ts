import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { composeScripts } from "../../scripts/compose-scripts.mjs";
import { storedAs } from "../keys.js";
import { scriptSources } from "./scripts.generated.js";

const folder = new URL("..", import.meta.url);
const luaFiles = ["algorithms", "store"].flatMap((room) =>
  readdirSync(new URL(`${room}/`, folder))
    .filter((name) => name.endsWith(".lua"))
    .map((name) => `${room}/${name}`),
);

test("the committed scripts are those that the Lua files compose to", () => {
  const committed = readFileSync(new URL("store/scripts.generated.ts", folder), "utf8");
  expect(committed).toBe(composeScripts());
});

test("every stored form has a Lua body of its name, under its letter", () => {
  for (const [stem, letter] of Object.entries(storedAs)) {
    expect(luaFiles).toContain(`algorithms/${stem}.lua`);
    expect(scriptSources.decide).toContain(`if letter == '${letter}' then`);
    expect(Object.keys(scriptSources)).toContain(`single-${letter}`);
  }
});

test.each(luaFiles)("%s opens with what it is for", (file) => {
  const [opening] = readFileSync(new URL(file, folder), "utf8").split("]]");
  expect(opening).toMatch(/^--\[\[ [a-z-]+[:,]/);
  if (file.startsWith("algorithms/")) expect(opening).toContain("policy  ");
  else if (!/(prelude|id-record)\.lua$/.test(file))
    for (const part of ["KEYS", "ARGV", "returns"]) expect(opening).toContain(part);
});

test.each(luaFiles)("%s asks for no key by pattern, and leaves none without an expiry", (file) => {
  const body = readFileSync(new URL(file, folder), "utf8");
  expect(body).not.toMatch(/'(KEYS|SCAN|FLUSHDB|FLUSHALL)'/);
  for (const [call] of body.matchAll(/call\('SET',[^\n]*/g)) expect(call).toMatch(/'PX'|'PXAT'|'KEEPTTL'/);
});
