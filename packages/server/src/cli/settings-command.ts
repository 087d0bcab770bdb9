/** A command with one option per setting: `serve` and `doctor`. */
import { Command, Option } from "commander";
import { settingNames, settingSpecs, variableOf } from "../settings/settings.js";

export function settingsCommand(name: string): Command {
  const command = new Command(name);
  for (const name of settingNames) {
    const { placeholder, meaning, ...rest } = settingSpecs[name];
    const option = new Option(`--${name} <${placeholder}>`, meaning);
    // Show the default only in the description: a Commander default would hide whether the flag was given.
    const byDefault = "default" in rest ? rest.default : undefined;
    if (byDefault !== undefined) option.description = `${meaning} (default: ${byDefault})`;
    command.addOption(option);
  }
  return command.option(
    "--config <FILE>",
    `settings by name, in YAML (${variableOf("config")}; default: sluice.yaml if it is there)`,
  );
}

/** Commander names `--grpc-port` grpcPort. */
export function flagsByName(flags: Readonly<Record<string, string>>): Record<string, string | undefined> {
  const camel = (name: string): string => name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(settingNames.map((name) => [name, flags[camel(name)]]));
}
