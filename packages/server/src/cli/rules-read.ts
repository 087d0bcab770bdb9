/** Commands that read a server's rules: `list`, `show`, `export`, `history`. */
import { writeFileSync } from "node:fs";
import { type Command, Option } from "commander";
import type { Rule } from "sluice";
import { writeRuleFile } from "../configuration/rule-file.js";
import { printableJson } from "../printable.js";
import { figure, printJson, printLine, printTable } from "./print.js";
import { type AdminOptions, adminCommand, askAdmin, wholeNumber } from "./rules-client.js";

interface RulesReply {
  readonly version: number;
  readonly rules: readonly Rule[];
}

interface HistoryReply {
  readonly versions: readonly {
    readonly version: number;
    readonly createdAt: string;
    readonly author: string;
    readonly summary: string;
    readonly message: string;
  }[];
}

export function listCommand(): Command {
  return adminCommand("list")
    .description("the rules in force")
    .action(async (options: AdminOptions) => {
      const reply = await askAdmin<RulesReply>("/rules", options);
      if (options.json) {
        printJson(reply);
        return;
      }
      printTable(
        ["rule", "mode", "algorithm", "limit", "per", "counted by", "overrides"],
        reply.rules.map((rule) => [
          rule.id,
          rule.mode ?? "enforce",
          rule.algorithm,
          limitOf(rule),
          windowOf(rule),
          rule.key.length === 0 ? "all together" : rule.key.join(", "),
          String(rule.overrides?.length ?? 0),
        ]),
      );
      printLine(`version ${Number(reply.version)}`);
    });
}

export function showCommand(): Command {
  return adminCommand("show")
    .description("one rule, as YAML")
    .argument("<rule>", "the rule's id")
    .action(async (id: string, options: AdminOptions) => {
      const rule = await askAdmin<Rule>(`/rules/${encodeURIComponent(id)}`, options);
      if (options.json) printJson(rule);
      else process.stdout.write(writeRuleFile([rule]));
    });
}

export function exportCommand(): Command {
  return adminCommand("export")
    .description("all rules as YAML, in a stable order; `apply` takes it back")
    .option("-o, --output <file>", "write there instead of standard output")
    .addOption(new Option("--rules-version <version>", "an old version instead of the newest").argParser(wholeNumber))
    .action(async (options: AdminOptions & { output?: string; rulesVersion?: string }) => {
      const { output, rulesVersion } = options;
      const path = rulesVersion === undefined ? "/rules" : `/versions/${rulesVersion}`;
      const { rules } = await askAdmin<RulesReply>(path, options);
      const text = options.json ? `${printableJson({ rules })}\n` : writeRuleFile(rules);
      if (output === undefined) process.stdout.write(text);
      else writeFileSync(output, text);
    });
}

export function historyCommand(): Command {
  return adminCommand("history")
    .description("every version: when, who, what and why")
    .option("--limit <n>", "how many, newest first", wholeNumber, "20")
    .action(async (options: AdminOptions & { limit: string }) => {
      const limit = String(Math.min(500, Number(options.limit)));
      const reply = await askAdmin<HistoryReply>("/versions", options, { query: { limit } });
      if (options.json) {
        printJson(reply);
        return;
      }
      printTable(
        ["version", "when", "who", "what", "why"],
        reply.versions.map(({ version, createdAt, author, summary, message }) => [
          String(version),
          createdAt,
          author,
          summary,
          message,
        ]),
      );
    });
}

function limitOf({ limit, unit }: Rule): string {
  const number = typeof limit === "number" ? figure(limit) : (limit ?? "-");
  return unit === undefined ? number : `${number} ${unit}`;
}

function windowOf(rule: Rule): string {
  if (rule.algorithm === "concurrency" || rule.algorithm === "load-shedding") return "at once";
  if (rule.algorithm === "token-bucket" && rule.refill !== undefined) {
    return `${rule.refill.amount} every ${rule.refill.every}`;
  }
  return rule.window ?? "";
}
