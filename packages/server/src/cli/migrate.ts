/** `sluice migrate nginx.conf`: converts another limiter's configuration to rules, with notes on what needs review. */
import { readFileSync, writeFileSync } from "node:fs";
import { Command, Option } from "commander";
import { stringify } from "yaml";
import { readRuleFile, writeRuleFile } from "../configuration/rule-file.js";
import { printable } from "../printable.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import { migrateEnvoy } from "./migrate/envoy-ratelimit.js";
import { migrateKong } from "./migrate/kong.js";
import type { Migrated } from "./migrate/migrated.js";
import { migrateNginx } from "./migrate/nginx.js";

const migrations = { nginx: migrateNginx, kong: migrateKong, envoy: migrateEnvoy };
type Kind = keyof typeof migrations;

interface Options {
  readonly from?: Kind;
  readonly output?: string;
  readonly attributes?: string;
}

export function migrateCommand(): Command {
  return new Command("migrate")
    .description("turn limits of nginx, Kong or envoyproxy/ratelimit into rules; see docs/from-other-limiters.md")
    .argument("<file>", "nginx.conf (better: the output of nginx -T), kong.yaml, or a file of envoyproxy/ratelimit")
    .addOption(new Option("--from <kind>", "whose it is; default: by its content").choices(Object.keys(migrations)))
    .option("-o, --output <file>", "write the rules there instead of standard output")
    .option("--attributes <file>", "write the attributes that the rules count by there, for sluice serve --attributes")
    .action((file: string, options: Options) => {
      const migrated = read(file, options.from);
      const rules = rulesText(migrated, file);
      if (options.output === undefined) process.stdout.write(rules);
      else writeFileSync(options.output, rules);
      if (options.attributes !== undefined) writeFileSync(options.attributes, attributesText(migrated));
      for (const note of migrated.notes) process.stderr.write(`note: ${printable(note)}\n`);
    });
}

function read(file: string, from: Kind | undefined): Migrated {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new CommandFailure(`${file}: ${(error as Error).message}`, exitStatus.misuse);
  }
  try {
    const migrated = migrations[from ?? kindOf(text)](text);
    if (migrated.rules.length > 0) return migrated;
    throw new Error(["no limit was found", ...migrated.notes].join("\n"));
  } catch (error) {
    throw new CommandFailure(`${file}: ${printable((error as Error).message)}`);
  }
}

function kindOf(text: string): Kind {
  if (/^\s*limit_(req|conn)(_zone)?\s/m.test(text)) return "nginx";
  if (/^\s*"?domain"?\s*:/m.test(text)) return "envoy";
  return /^\s*"?(_format_version|plugins|services)"?\s*:/m.test(text) ? "kong" : "nginx";
}

/** The notes are written into the rule file, so that they cannot get lost with the terminal. */
function rulesText({ rules, attributes, notes }: Migrated, file: string): string {
  const text = writeRuleFile(rules);
  const checked = readRuleFile(text);
  if ("mistakes" in checked) {
    const told = checked.mistakes.map(({ path, message }) => `${path}: ${message}`);
    throw new CommandFailure(`${file} has limits that rules cannot say:\n${printable(told.join("\n"))}`);
  }
  const comments = [`From ${file}, by sluice migrate.`, ...notes.map((note) => `NOTE: ${note}`)];
  if (attributes.size > 0)
    comments.push(`Needs attributes: ${[...attributes.keys()].join(", ")} (sluice migrate --attributes)`);
  return `${comments.map((line) => `# ${printable(line)}\n`).join("")}${text}`;
}

function attributesText({ attributes }: Migrated): string {
  return stringify({ attributes: Object.fromEntries(attributes) });
}
