/**
 * `sluice rules`: rules in files and on a server. Commands that read only files (lint, diff of two files) need no server.
 * Exit 0 done, 1 failed, 2 misuse.
 */
import { Command } from "commander";
import { applyCommand, promoteCommand, rollbackCommand } from "./rules-change.js";
import { diffCommand, lintCommand } from "./rules-files.js";
import { exportCommand, historyCommand, listCommand, showCommand } from "./rules-read.js";

export function rulesCommand(): Command {
  const rules = new Command("rules").description("rules in files and on a server");
  const commands = [
    listCommand,
    showCommand,
    lintCommand,
    diffCommand,
    applyCommand,
    exportCommand,
    historyCommand,
    rollbackCommand,
    promoteCommand,
  ];
  for (const make of commands) rules.addCommand(make());
  return rules;
}
