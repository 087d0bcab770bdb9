import fc from "fast-check";
import { expect, test } from "vitest";
import { settingNames } from "../settings/settings.js";
import { readFlags } from "./read-flags.js";
import { flagsByName, settingsCommand } from "./settings-command.js";

/** The result of Commander's parsing; undefined if it reports a mistake or prints help. */
function byCommander(args: readonly string[]): Record<string, string | undefined> | undefined {
  const command = settingsCommand("serve")
    .exitOverride()
    .configureOutput({ writeOut: () => {}, writeErr: () => {} });
  try {
    command.parse([...args], { from: "user" });
  } catch {
    return undefined;
  }
  if (command.args.length > 0) return undefined;
  const { config, ...flags } = command.opts<Record<string, string>>();
  return { ...flagsByName(flags), config };
}

const present = (flags: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));

const name = fc.constantFrom(...settingNames, "config", "help", "version", "prot", "__proto__", "constructor", "port ");
const value = fc.oneof(fc.constantFrom("", "8080", "-1", "--port", "a=b", "a\nb", " ", "--"), fc.string());
const argument = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(name, value).map(([n, v]) => [`--${n}`, v]) },
  { weight: 3, arbitrary: fc.tuple(name, value).map(([n, v]) => [`--${n}=${v}`]) },
  { weight: 1, arbitrary: value.map((v) => [v]) },
);

test("arguments parsed without Commander give the same result as with it", () => {
  let taken = 0;
  fc.assert(
    fc.property(fc.array(argument, { maxLength: 4 }), (groups) => {
      const args = groups.flat();
      const quick = readFlags(args);
      if (quick === undefined) return;
      taken++;
      const slow = byCommander(args);
      expect(slow === undefined ? slow : present(slow)).toEqual(quick);
    }),
    { numRuns: 1_000 },
  );
  expect(taken).toBeGreaterThan(100);
});

test("common flags are parsed; help, mistakes and anything else are left to Commander", () => {
  expect(readFlags([])).toEqual({});
  expect(readFlags(["--port", "0", "--grpc-port=8081", "--store", "redis://r", "--config", "x.yaml"])).toEqual({
    port: "0",
    "grpc-port": "8081",
    store: "redis://r",
    config: "x.yaml",
  });
  for (const args of [["--help"], ["-h"], ["--port"], ["--prot", "1"], ["extra"], ["--port", "-1"], ["--", "x"]])
    expect(readFlags(args), args.join(" ")).toBeUndefined();
});
