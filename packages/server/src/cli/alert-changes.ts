/** `sluice alerts ack|silence|unsilence|silences|policy|apply|test`: manages alerts and the alert policy. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { parse as parseYaml, stringify as writeYaml } from "yaml";
import { printable } from "../printable.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import { printJson, printLine, printTable } from "./print.js";
import { type AdminOptions, adminCommand, askAdmin, wholeNumber } from "./rules-client.js";

interface Silence {
  readonly id: string;
  readonly match: Readonly<Record<string, string>>;
  readonly reason: string;
  readonly author: string;
  readonly endsAtMs: number;
}

export function alertChangeCommands(): Command[] {
  return [
    ackCommand(),
    silenceCommand(),
    unsilenceCommand(),
    silencesCommand(),
    policyCommand(),
    applyCommand(),
    testCommand(),
  ];
}

function ackCommand(): Command {
  return adminCommand("ack")
    .description("note that you look after a firing alert; it is not repeated any more")
    .argument("<id>", "the alert's id, from sluice alerts --json")
    .option("-m, --message <text>", "a note for the others")
    .action(async (id: string, options: AdminOptions & { message?: string }) => {
      const body = JSON.stringify(options.message === undefined ? {} : { note: options.message });
      const path = `/alerts/${encodeURIComponent(id)}/acknowledge`;
      const alert = await askAdmin<{ summary: string }>(path, options, { method: "POST", body });
      if (options.json) printJson(alert);
      else printLine(`acknowledged: ${printable(alert.summary)}`);
    });
}

function silenceCommand(): Command {
  return adminCommand("silence")
    .description("hold back the messages of alerts that fit, until it ends")
    .requiredOption("--for <duration>", "how long, such as 2h")
    .option("--rule <id>", "only alerts of this rule")
    .option("--tag <tag>", "only alerts of rules with this tag")
    .option("--kind <kind>", "only this kind of alert, or this condition")
    .option("--all", "every alert")
    .option("-m, --message <text>", "why")
    .action(
      async (
        options: AdminOptions & {
          for: string;
          rule?: string;
          tag?: string;
          kind?: string;
          all?: boolean;
          message?: string;
        },
      ) => {
        const { rule, tag, kind, all, message } = options;
        const match = { ...(rule && { rule }), ...(tag && { tag }), ...(kind && { kind }) };
        const body = JSON.stringify({
          match,
          ...(all && { all }),
          for: options.for,
          ...(message && { reason: message }),
        });
        const made = await askAdmin<Silence>("/alerts/silences", options, { method: "POST", body });
        if (options.json) printJson(made);
        else printLine(`${made.id} until ${new Date(made.endsAtMs).toISOString()}`);
      },
    );
}

function unsilenceCommand(): Command {
  return adminCommand("unsilence")
    .description("end a silence")
    .argument("<id>", "its id, from sluice alerts silences")
    .action(async (id: string, options: AdminOptions) => {
      await askAdmin<undefined>(`/alerts/silences/${encodeURIComponent(id)}`, options, { method: "DELETE" });
      if (options.json) printJson({ ended: true });
      else printLine(`${printable(id)}: ended`);
    });
}

function silencesCommand(): Command {
  return adminCommand("silences")
    .description("silences that are not over")
    .action(async (options: AdminOptions) => {
      const reply = await askAdmin<{ silences: readonly Silence[] }>("/alerts/silences", options);
      if (options.json) return printJson(reply);
      if (reply.silences.length === 0) return printLine("no silences");
      const rows = reply.silences.map(({ id, match, endsAtMs, author, reason }) => [
        id,
        Object.entries(match)
          .map(([name, value]) => `${name}=${value}`)
          .join(" ") || "every alert",
        new Date(endsAtMs).toISOString(),
        author,
        reason,
      ]);
      printTable(["id", "of", "until", "by", "why"], rows);
    });
}

function policyCommand(): Command {
  return adminCommand("policy")
    .description("thresholds, detectors, receivers (without secrets) and routes, as YAML")
    .action(async (options: AdminOptions) => {
      const policy = await askAdmin<object>("/alerts/policy", options);
      if (options.json) printJson(policy);
      else printLine(writeYaml(policy).trimEnd());
    });
}

function applyCommand(): Command {
  return adminCommand("apply")
    .description("make FILE (YAML or JSON) the alert policy; secrets that it leaves out stay; needs the role admin")
    .argument("<file>", "the file; - reads standard input")
    .option("-m, --message <text>", "why; kept with the version")
    .option("--if-match <version>", "only if this version is still the newest", wholeNumber)
    .action(async (file: string, options: AdminOptions & { message?: string; ifMatch?: string }) => {
      const applied = await askAdmin<{ version: number }>("/alerts/policy", options, {
        method: "PUT",
        body: JSON.stringify(documentOf(file)),
        query: { message: options.message },
        ifMatch: options.ifMatch,
      });
      if (options.json) printJson(applied);
      else printLine(`version ${applied.version}`);
    });
}

function documentOf(file: string): unknown {
  try {
    return parseYaml(readFileSync(file === "-" ? 0 : file, "utf8"));
  } catch (error) {
    throw new CommandFailure(`${file}: ${(error as Error).message}`, exitStatus.misuse);
  }
}

function testCommand(): Command {
  return adminCommand("test")
    .description("send a test message to a receiver; needs the role admin")
    .argument("<receiver>", "its id")
    .action(async (receiver: string, options: AdminOptions) => {
      const path = `/alerts/receivers/${encodeURIComponent(receiver)}/test`;
      const result = await askAdmin<{ delivered: boolean; error?: string }>(path, options, { method: "POST" });
      if (options.json) printJson(result);
      else if (result.delivered) printLine(`${printable(receiver)}: delivered`);
      if (!result.delivered) throw new CommandFailure(options.json ? "" : `${receiver}: ${result.error}`);
    });
}
