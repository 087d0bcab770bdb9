/**
 * The settings in force, including the settings file. Only files in this folder whose names end with `settings` may read the environment.
 */
import { readConfigFile } from "./config-file.js";
import { configFileOf, type SettingSources, settingsFrom } from "./given-settings.js";
import { ignoredReferenceNames } from "./ignored-reference-names.js";
import { type Settings, settingNames, variableOf } from "./setting-specs.js";
import { unknownVariables } from "./unknown-variables.js";

export { socketsOfSupervisor } from "./given-settings.js";
export { type Settings, settingNames, settingSpecs, variableOf } from "./setting-specs.js";

/** Throws `invalid-setting` with every mistake, one per line. */
export function resolveSettings(sources: SettingSources): Settings {
  const file = configFileOf(sources);
  return settingsFrom(sources, file === undefined ? undefined : readConfigFile(file));
}

/** Variables that are set without effect, with the reason: misspelled ones of ours, and some of envoyproxy/ratelimit. */
export function ignoredVariables(
  env: Readonly<Record<string, string | undefined>> = process.env,
): { name: string; why: string }[] {
  const known = [...settingNames.map(variableOf), "SLUICE_CONFIG", "SLUICE_SERVER"];
  return [...unknownVariables(env, known), ...ignoredReferenceNames(env)];
}

/** The environment of commands that call a running service. */
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

/** Colour on a terminal unless NO_COLOR is set; elsewhere only with FORCE_COLOR. */
export function wantsColour(
  isTerminal: boolean,
  env: Readonly<Record<string, string | undefined>> = process.env,
): boolean {
  return !env.NO_COLOR && (isTerminal || (env.FORCE_COLOR ?? "0") !== "0");
}
