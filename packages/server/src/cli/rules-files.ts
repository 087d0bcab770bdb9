/**
 * Rules in files: `lint` reports every mistake with its line, `diff` shows what would change. Files are YAML or JSON; `-` is standard
 * input.
 */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { type Rule, validateRules } from "sluice";
import { TimeSlice } from "sluice/internal";
import { whyUnreadable } from "../analysis/log/read-lines.js";
import { diffText } from "../configuration/diff-text.js";
import { diffRules, isEmpty, type RuleDiff } from "../configuration/rule-diff.js";
import { type PlacedMistake, readRuleFile } from "../configuration/rule-file.js";
import { printable } from "../printable.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import { colours, printJson, printLine } from "./print.js";
import { type AdminOptions, adminCommand, askAdmin } from "./rules-client.js";

type Checked = { readonly rules: Rule[] } | { readonly mistakes: readonly PlacedMistake[] };

export function lintCommand(): Command {
  return new Command("lint")
    .description("every mistake of rule files, with file, line and column; exit status 1 if there is one")
    .argument("<files...>", "YAML or JSON; - for standard input")
    .option("--json", "print JSON", false)
    .action(async (files: string[], { json }: { json: boolean }) => {
      const outcomes = files.map((file) => ({ file, ...checkFile(file) }));
      const mistakes = outcomes.flatMap((one) =>
        "mistakes" in one ? one.mistakes.map((mistake) => ({ file: one.file, ...mistake })) : [],
      );
      if (json) printJson({ mistakes });
      else for (const outcome of outcomes) printLine(lintLine(outcome));
      if (mistakes.length > 0) throw new CommandFailure("");
    });
}

export function diffCommand(): Command {
  return adminCommand("diff")
    .description("what a file would change on the server; or, given two files, between them")
    .argument("<file>", "YAML or JSON; - for standard input")
    .argument("[other]", "a second file: compare the first with it, without a server")
    .option("--exit-code", "exit status 1 if there is a difference", false)
    .action(async (file: string, other: string | undefined, options: AdminOptions & { exitCode: boolean }) => {
      const rules = rulesIn(file);
      const diff =
        other === undefined
          ? await diffRules((await askAdmin<{ rules: Rule[] }>("/rules", options)).rules, rules, new TimeSlice())
          : await diffRules(rules, rulesIn(other), new TimeSlice());
      if (options.json) printJson(diff);
      else printDiff(diff);
      if (options.exitCode && !isEmpty(diff)) throw new CommandFailure("");
    });
}

/** A file's rules; throws its mistakes, one per line with its position. */
export function rulesIn(file: string): Rule[] {
  const checked = checkFile(file);
  if ("rules" in checked) return checked.rules;
  throw new CommandFailure(checked.mistakes.map((mistake) => mistakeLine(file, mistake)).join("\n"));
}

const lineColours: Readonly<Record<string, (text: string) => string>> = {
  "+": colours.green,
  "-": colours.red,
  "~": colours.yellow,
};

export function printDiff(diff: RuleDiff): void {
  const lines = diffText(diff).split("\n");
  for (const line of lines) printLine((lineColours[line[0] ?? ""] ?? String)(printable(line)));
}

function checkFile(file: string): Checked {
  const text = textOf(file);
  // Parsing YAML takes a second per megabyte: tell the user what is going on.
  const isLong = text.length > 500_000 && process.stderr.isTTY;
  if (isLong) process.stderr.write(`reading ${file} (${(text.length / 1e6).toFixed(1)} MB)\n`);
  const read = readRuleFile(text);
  if ("mistakes" in read) return read;
  const outcome = validateRules(read.document);
  return "rules" in outcome ? outcome : { mistakes: read.place(outcome.mistakes) };
}

function textOf(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new CommandFailure(
      `${file}: ${whyUnreadable(error as NodeJS.ErrnoException, "rules/*.yaml")}`,
      exitStatus.misuse,
    );
  }
}

function lintLine(outcome: { file: string } & Checked): string {
  if ("mistakes" in outcome) return outcome.mistakes.map((mistake) => mistakeLine(outcome.file, mistake)).join("\n");
  const { length } = outcome.rules;
  return `${printable(outcome.file)}: ${length} ${length === 1 ? "rule" : "rules"}, no mistakes`;
}

function mistakeLine(file: string, { path, message, line, column }: PlacedMistake): string {
  const place = line === undefined ? file : `${file}:${line}:${column}`;
  return `${colours.bold(printable(place))}: ${printable(`${path}: ${message}`)}`;
}
