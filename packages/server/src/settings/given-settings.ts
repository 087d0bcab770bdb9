/**
 * Resolves the settings against the table (`setting-specs.ts`): flag, then variable, then file, then default.
 * In: flags, environment, file. Out: fully validated settings, or every mistake at once.
 * Small on purpose: loaded before the ports open. The YAML file is read elsewhere (`config-file.ts`).
 */
import { statSync } from "node:fs";
import { SluiceError } from "sluice";
import { type InheritedSockets, inheritedSockets } from "./inherited-sockets.js";
import { referenceSettings } from "./reference-environment.js";
import { isServiceLink } from "./service-links.js";
import { conflicts } from "./setting-conflicts.js";
import {
  type SettingName,
  type SettingSpec,
  type Settings,
  settingNames,
  settingSpecs,
  variableOf,
} from "./setting-specs.js";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Given {
  readonly text: string;
  /** As the user would name it: `--port`, `SLUICE_PORT`, `port in sluice.yaml`. */
  readonly where: string;
}

/** The settings file's values by setting name, and its mistakes. */
export interface FileSettings {
  readonly given: ReadonlyMap<string, Given>;
  readonly mistakes: readonly string[];
}

export interface SettingSources {
  /** By setting name; absent ones were not given. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  readonly env?: Environment;
  readonly configFile?: string | undefined;
}

/** Read if it exists; a file named by `--config` or SLUICE_CONFIG must exist. */
const DEFAULT_CONFIG_FILE = "sluice.yaml";
const noFile: FileSettings = { given: new Map(), mistakes: [] };

/** The settings file; undefined if there is none and none was named. */
export function configFileOf({
  env = process.env,
  configFile = env.SLUICE_CONFIG,
}: Pick<SettingSources, "env" | "configFile">): string | undefined {
  return configFile ?? (isThere(DEFAULT_CONFIG_FILE) ? DEFAULT_CONFIG_FILE : undefined);
}

/** A file that cannot be accessed counts as present: reading it then reports why. */
function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** Throws `invalid-setting` with every mistake, one per line. */
export function settingsFrom(
  { flags, env = process.env }: SettingSources,
  { given: fromFile, mistakes: ofFile } = noFile,
): Settings {
  const mistakes = [...ofFile];
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

const MOST_SPELLED = 200;

/** For messages, which end up in logs: without secrets, even those in a URL, and at most a line or two long. */
export function spellGiven({ secret: isSecret }: Pick<SettingSpec<unknown>, "secret">, given: unknown): string {
  // Not serialised: a YAML alias can make a mapping contain itself.
  if (typeof given === "object" && given !== null) return "a list or a mapping";
  if (isSecret) return typeof given === "string" ? `${given.length} characters` : JSON.stringify(given);
  const spelled = JSON.stringify(given).replace(/:\/\/.*@/, "://…@");
  return spelled.length <= MOST_SPELLED
    ? spelled
    : `${spelled.slice(0, MOST_SPELLED)}… (${String(given).length} characters)`;
}

/** envoyproxy/ratelimit's variables have lower precedence than our own. */
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
  // Shells and compose files pass empty variables for absent ones.
  const isGiven = variable !== undefined && variable !== "" && !isServiceLink(variableOf(name), variable);
  if (isGiven) return { text: variable, where: variableOf(name) };
  return fromReference.get(name) ?? fromFile.get(name);
}

/** Sockets that a supervisor keeps for this process. */
export function socketsOfSupervisor(env: Readonly<Record<string, string | undefined>> = process.env): InheritedSockets {
  return inheritedSockets(env, process.pid);
}
