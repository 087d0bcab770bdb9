/**
 * Parses the flags of `sluice serve` without Commander, which is most of the code that a start would load before its ports open.
 * In: the arguments after the command. Out: the same as Commander's result; or undefined if Commander would do anything but accept them
 * (help, mistakes, other notations). Pure.
 */
import { settingNames } from "../settings/setting-specs.js";

const known: ReadonlySet<string> = new Set([...settingNames, "config"]);

/** By setting name, and `config`. */
export function readFlags(args: readonly string[]): Record<string, string> | undefined {
  const flags: Record<string, string> = {};
  for (let i = 0; i < args.length; i++) {
    const [, name, attached] = /^--([a-z-]+)(?:=(.*))?$/s.exec(args[i]!) ?? [];
    if (name === undefined || !known.has(name)) return undefined;
    const value = attached ?? args[++i];
    if (value === undefined || (attached === undefined && value.startsWith("-"))) return undefined;
    flags[name] = value;
  }
  return flags;
}
