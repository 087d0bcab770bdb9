/** Commands that change a server's rules: `apply`, `rollback`, `promote`. Each creates one version, or none if nothing changes. */
import type { Command } from "commander";
import { TimeSlice } from "sluice/internal";
import { writeDocument } from "../configuration/document-text.js";
import type { RuleDiff } from "../configuration/rule-diff.js";
import { printJson, printLine } from "./print.js";
import { type AdminCall, type AdminOptions, askAdmin, changeCommand, wholeNumber } from "./rules-client.js";
import { printDiff, rulesIn } from "./rules-files.js";

interface ChangeOptions extends AdminOptions {
  readonly message?: string;
  readonly ifMatch?: string;
  readonly dryRun: boolean;
}

interface AppliedReply {
  readonly version: number;
  readonly changed: boolean;
  readonly diff: RuleDiff;
}

export function applyCommand(): Command {
  return changeCommand("apply")
    .description("make a file's rules the server's, as a whole")
    .argument("<file>", "YAML or JSON; - for standard input")
    .action(async (file: string, options: ChangeOptions) => {
      // Validate locally, where line numbers are known.
      const body = await writeDocument(rulesIn(file), new TimeSlice());
      await change("/rules", options, { method: "PUT", body });
    });
}

export function rollbackCommand(): Command {
  return changeCommand("rollback")
    .description("make an old version's rules the newest")
    .argument("<version>", "its number, from history", wholeNumber)
    .action((version: string, options: ChangeOptions) =>
      change(`/versions/${version}/rollback`, options, { method: "POST" }),
    );
}

export function promoteCommand(): Command {
  return changeCommand("promote")
    .description("make a rule's candidate its live numbers")
    .argument("<rule>", "the rule's id")
    .action((id: string, options: ChangeOptions) =>
      change(`/rules/${encodeURIComponent(id)}/promote`, options, { method: "POST" }),
    );
}

async function change(path: string, options: ChangeOptions, call: AdminCall): Promise<void> {
  const { message, ifMatch, dryRun, json } = options;
  const query = { message, ...(dryRun && { dryRun: "true" }) };
  const reply = await askAdmin<AppliedReply>(path, options, { ...call, query, ifMatch });
  if (json) {
    printJson(reply);
    return;
  }
  printDiff(reply.diff);
  const version = Number(reply.version);
  if (reply.changed) printLine(`version ${version} is in force`);
  else printLine(dryRun ? `a dry run: version ${version} stays` : `version ${version} stays in force`);
}
