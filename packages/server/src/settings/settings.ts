/**
 * The settings in force, from the table (`setting-specs.ts`): the flag wins, then the variable, then the file, then the default.
 * In: flags, environment, file. Out: settings that need no second look, or every mistake at once. Only this file reads the environment.
 */
import { readFileSync } from "node:fs";
import { SluiceError } from "sluice";
import { parse as parseYaml } from "yaml";
import { ignoredReferenceNames } from "./ignored-reference-names.js";
import { type InheritedSockets, inheritedSockets } from "./inherited-sockets.js";
import { referenceSettings } from "./reference-environment.js";
import { conflicts } from "./setting-conflicts.js";
import {
  type SettingName,
  type SettingSpec,
  type Settings,
  settingNames,
  settingSpecs,
  variableOf,
} from "./setting-specs.js";
import { isServiceLink, unknownVariables } from "./unknown-variables.js";

export { type Settings, settingNames, settingSpecs, variableOf } from "./setting-specs.js";

/** Read where it lies, if it is there; `--config FILE` must be there. */
const DEFAULT_CONFIG_FILE = "sluice.yaml";

interface Given {
  readonly text: string;
  /** How the user would name it: `--port`, `SLUICE_PORT`, `port in sluice.yaml`. */
  readonly where: string;
}

interface SettingSources {
  /** By setting name; absent ones were not given. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly configFile?: string | undefined;
}

/** The settings in force; throws `invalid-setting` with every mistake, one a line. */
export function resolveSettings({ flags, env = process.env, configFile }: SettingSources): Settings {
  const mistakes: string[] = [];
  const fromFile = readConfigFile(configFile ?? env.SLUICE_CONFIG, mistakes);
  const fromReference = referenceSettings(env);
  const settings: Record<string, unknown> = {};
  for (const name of settingNames) {
    const spec: SettingSpec<unknown> = settingSpecs[name];
    const given = firstGiven(name, { flags, env, fromFile, fromReference });
    const text = given?.text ?? spec.default;
    if (text === undefined) continue;
    const value = spec.parse(text);
    if (value === undefined) {
      mistakes.push(`${given?.where ?? name}: expected ${spec.expected}, got ${spellGiven(spec, text)}`);
    } else settings[name] = value;
  }
  if (mistakes.length === 0) mistakes.push(...conflicts(settings as Settings));
  if (mistakes.length > 0) throw new SluiceError("invalid-setting", mistakes.join("\n"));
  return settings as Settings;
}

/** For messages, which end in logs: without secrets, also where one stands in a URL. */
function spellGiven({ secret: isSecret }: Pick<SettingSpec<unknown>, "secret">, given: unknown): string {
  if (isSecret) return typeof given === "string" ? `${given.length} characters` : "a list or a mapping";
  return JSON.stringify(given).replace(/:\/\/.*@/, "://…@");
}

/** The environment of envoyproxy/ratelimit comes behind our own names for the same. */
function firstGiven(
  name: SettingName,
  {
    flags,
    env,
    fromFile,
    fromReference,
  }: Required<Pick<SettingSources, "flags" | "env">> & {
    fromFile: ReadonlyMap<string, Given>;
    fromReference: ReadonlyMap<string, Given>;
  },
): Given | undefined {
  const flag = flags[name];
  if (flag !== undefined) return { text: flag, where: `--${name}` };
  const variable = env[variableOf(name)];
  // An empty variable is how shells and compose files leave one out.
  const isGiven = variable !== undefined && variable !== "" && !isServiceLink(variableOf(name), variable);
  if (isGiven) return { text: variable, where: variableOf(name) };
  return fromReference.get(name) ?? fromFile.get(name);
}

function readConfigFile(named: string | undefined, mistakes: string[]): ReadonlyMap<string, Given> {
  const file = named ?? DEFAULT_CONFIG_FILE;
  const given = new Map<string, Given>();
  let document: unknown;
  try {
    document = parseYaml(readFileSync(file, "utf8"));
  } catch (error) {
    const { code, message, syscall } = error as NodeJS.ErrnoException;
    if (syscall !== undefined) {
      if (code !== "ENOENT" || named !== undefined)
        mistakes.push(`config: expected a file that can be read, got ${JSON.stringify(file)} (${code})`);
      return given;
    }
    // The first line: below it the parser quotes the file, which may hold tokens.
    mistakes.push(`config: expected YAML in ${file}, got ${message.split("\n")[0]!.replace(/:$/, "")}`);
    return given;
  }
  if (document === null) return given;
  if (typeof document !== "object" || Array.isArray(document)) {
    mistakes.push(`${file}: expected settings by name, such as "port: 8080"`);
    return given;
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
  return given;
}

/** Sockets that a supervisor keeps for this process. */
export function socketsOfSupervisor(env: Readonly<Record<string, string | undefined>> = process.env): InheritedSockets {
  return inheritedSockets(env, process.pid);
}

/** Variables that are set and do nothing, each with the reason: misspelled ones of ours, and some of envoyproxy/ratelimit. */
export function ignoredVariables(
  env: Readonly<Record<string, string | undefined>> = process.env,
): { name: string; why: string }[] {
  const known = [...settingNames.map(variableOf), "SLUICE_CONFIG", "SLUICE_SERVER"];
  return [...unknownVariables(env, known), ...ignoredReferenceNames(env)];
}

/** The environment of the commands that call a running service. */
export function clientSettings(env: Readonly<Record<string, string | undefined>> = process.env): {
  server: string;
  apiToken: string | undefined;
  adminToken: string | undefined;
} {
  return {
    server: env.SLUICE_SERVER || "http://127.0.0.1:8080",
    apiToken: env.SLUICE_API_TOKEN || undefined,
    adminToken: env.SLUICE_ADMIN_TOKEN || undefined,
  };
}

/** Colour on a terminal, unless NO_COLOR; elsewhere only by FORCE_COLOR. */
export function wantsColour(
  isTerminal: boolean,
  env: Readonly<Record<string, string | undefined>> = process.env,
): boolean {
  return !env.NO_COLOR && (isTerminal || (env.FORCE_COLOR ?? "0") !== "0");
}
