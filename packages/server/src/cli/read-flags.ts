/**
 * The flags of `sluice serve` without Commander, which is most of the code that a start would read before its ports open.
 * In: the arguments behind the command. Out: what Commander would make of them; or undefined, wherever it would do anything but take
 * them as they are (help, mistakes, other spellings). Pure.
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
