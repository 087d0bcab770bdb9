/**
 * The settings in force, from the table (`setting-specs.ts`): the flag wins, then the variable, then the file, then the default.
 * In: flags, environment, file. Out: settings that need no second look, or every mistake at once.
 * Small on purpose: a start reads it before its ports open. The file, which is YAML, is read elsewhere (`config-file.ts`).
 */
import { statSync } from "node:fs";
import { SluiceError } from "sluice";
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
import { isServiceLink } from "./unknown-variables.js";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Given {
  readonly text: string;
  /** How the user would name it: `--port`, `SLUICE_PORT`, `port in sluice.yaml`. */
  readonly where: string;
}

/** What the settings file has, by setting name, and what is wrong with it. */
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

/** Read where it lies, if it is there; a file that `--config` or SLUICE_CONFIG names must be there. */
const DEFAULT_CONFIG_FILE = "sluice.yaml";
const noFile: FileSettings = { given: new Map(), mistakes: [] };

/** The settings file; undefined: there is none, and none is named. */
export function configFileOf({
  env = process.env,
  configFile = env.SLUICE_CONFIG,
}: Pick<SettingSources, "env" | "configFile">): string | undefined {
  return configFile ?? (isThere(DEFAULT_CONFIG_FILE) ? DEFAULT_CONFIG_FILE : undefined);
}

/** A file that cannot be looked at is there: to read it then says why not. */
function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** Throws `invalid-setting` with every mistake, one a line. */
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

/** For messages, which end in logs: without secrets, also where one stands in a URL. */
export function spellGiven({ secret: isSecret }: Pick<SettingSpec<unknown>, "secret">, given: unknown): string {
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

/** Sockets that a supervisor keeps for this process. */
export function socketsOfSupervisor(env: Readonly<Record<string, string | undefined>> = process.env): InheritedSockets {
  return inheritedSockets(env, process.pid);
}
