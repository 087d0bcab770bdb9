/**
 * Reads the settings file, `sluice.yaml` or another. In: its path. Out: settings as text, each with its position, and syntax errors.
 * Loaded only if there is a file: most starts do not need the YAML parser.
 */
import { readFileSync } from "node:fs";
import { parse as parseYaml } from "yaml";
import { type FileSettings, type Given, spellGiven } from "./given-settings.js";
import { type SettingName, type SettingSpec, settingSpecs } from "./setting-specs.js";

export function readConfigFile(file: string): FileSettings {
  const given = new Map<string, Given>();
  const mistakes: string[] = [];
  const document = parseFile(file, mistakes);
  if (document === null || document === undefined) return { given, mistakes };
  if (typeof document !== "object" || Array.isArray(document)) {
    mistakes.push(`${file}: expected settings by name, such as "port: 8080"`);
    return { given, mistakes };
  }
  for (const [name, value] of Object.entries(document as Record<string, unknown>)) {
    const where = `${name} in ${file}`;
    if (!Object.hasOwn(settingSpecs, name)) {
      mistakes.push(`${where}: expected the name of a setting (sluice serve --help lists them)`);
    } else if (typeof value === "object") {
      const spec: SettingSpec<unknown> = settingSpecs[name as SettingName];
      mistakes.push(`${where}: expected ${spec.expected}, got ${spellGiven(spec, value)}`);
    } else given.set(name, { text: String(value), where });
  }
  return { given, mistakes };
}

function parseFile(file: string, mistakes: string[]): unknown {
  try {
    return parseYaml(readFileSync(file, "utf8"));
  } catch (error) {
    const { code, message, syscall } = error as NodeJS.ErrnoException;
    if (syscall !== undefined)
      mistakes.push(`config: expected a file that can be read, got ${JSON.stringify(file)} (${code})`);
    // Only the first line: the rest of the parser's message quotes the file, which may contain tokens.
    else mistakes.push(`config: expected YAML in ${file}, got ${message.split("\n")[0]!.replace(/:$/, "")}`);
    return undefined;
  }
}
