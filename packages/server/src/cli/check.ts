/** `sluice check user=42 path=/v1/x --cost 2`: requests a decision, which charges. Exit status 3 if it is refused. */
import type { Command } from "commander";
import type { DecisionSummary, Explanation } from "sluice";
import { printable } from "../printable.js";
import { parseAttributes, parseCost } from "./attribute-arguments.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import { colours, figure, printJson, printLine, printTable, spellMs } from "./print.js";
import { type ClientOptions, clientCommand, post } from "./service-client.js";

interface AskOptions extends ClientOptions {
  readonly cost?: number;
  readonly id?: string;
  readonly json: boolean;
}

export type ToldDecision = DecisionSummary & {
  readonly lease?: { readonly id: string; readonly expiresAfterMs: number };
};

export function checkCommand(): Command {
  return askCommand("check")
    .description("decide and charge; exit status 3 if refused")
    .action(async (given: string[], options: AskOptions) => {
      const decision = await ask("/v1/check", given, options);
      show(decision, options);
      // The message has been printed already; only set the exit status.
      if (!decision.allowed) throw new CommandFailure("", exitStatus.refused);
    });
}

export function chargeCommand(): Command {
  return askCommand("charge")
    .description("charge a cost that has been incurred: never refused, counters may pass their limits")
    .action(async (given: string[], options: AskOptions) => {
      show(await ask("/v1/charge", given, options), options);
      if (options.cost !== undefined && options.cost > 1) await noteOtherCosts(given, options);
    });
}

export function peekCommand(): Command {
  return askCommand("peek")
    .description("the decision that a check would get, without charging")
    .action(async (given: string[], options: AskOptions) => show(await ask("/v1/peek", given, options), options));
}

function askCommand(name: string): Command {
  return clientCommand(name)
    .argument("[attributes...]", "attributes of the request, such as user=42")
    .option("--cost <n>", "what the request costs; 0 only looks", parseCost)
    .option("--id <id>", "the same id again within a minute returns the same decision");
}

async function ask(path: string, given: readonly string[], options: AskOptions): Promise<ToldDecision> {
  const { cost, id } = options;
  const body = {
    attributes: parseAttributes(given),
    ...(cost !== undefined && { cost }),
    ...(id !== undefined && { id }),
  };
  return (await post(path, body, options)) as unknown as ToldDecision;
}

/** A rule that takes its cost from an attribute uses that, or 1 if it is missing (decision 8), not --cost: point that out. */
async function noteOtherCosts(given: readonly string[], options: AskOptions): Promise<void> {
  const attributes = parseAttributes(given);
  const explained = await post("/v1/explain", { attributes, cost: 0 }, options).catch(() => undefined);
  for (const { rule, matched, costAttribute } of (explained as unknown as Explanation | undefined)?.rules ?? []) {
    if (!matched || costAttribute === undefined || Object.hasOwn(attributes, costAttribute)) continue;
    const note = `note: ${rule} counts ${costAttribute}, not --cost, and charged 1: pass ${costAttribute}=${options.cost}`;
    process.stderr.write(`${printable(note)}\n`);
  }
}

function show(decision: ToldDecision, { json }: { json: boolean }): void {
  if (json) printJson(decision);
  else showDecision(decision);
}

export function showDecision(decision: ToldDecision): void {
  printLine(headline(decision));
  if (decision.checks.length > 0) {
    printTable(
      ["rule", "mode", "verdict", "remaining", "limit", "retry after", "resets after"],
      decision.checks.map((check) => [
        check.variant === undefined ? check.rule : `${check.rule} (${check.variant})`,
        check.mode,
        check.allowed ? "allowed" : `refused: ${check.reason}`,
        figure(check.debt === undefined ? check.remaining : -check.debt),
        figure(check.limit),
        check.allowed || check.reason === "cost-exceeds-limit" ? "-" : spellMs(check.retryAfterMs),
        spellMs(check.resetAfterMs),
      ]),
    );
  }
  if (decision.lease !== undefined) {
    printLine(`lease ${printable(decision.lease.id)} (ends after ${spellMs(decision.lease.expiresAfterMs)})`);
  }
  if (decision.reservation !== undefined) {
    const { id, expiresAfterMs, held } = decision.reservation;
    const units = Object.entries(held).map(([rule, count]) => `${figure(count)} of ${rule}`);
    printLine(
      `reservation ${printable(id)} (holds ${printable(units.join(", "))}; ends after ${spellMs(expiresAfterMs)})`,
    );
  }
}

function headline({ allowed, rule, reason, retryAfterMs, delayMs = 0, degraded }: ToldDecision): string {
  const outage = degraded === undefined ? "" : ` (store unavailable, policy ${printable(degraded)})`;
  if (allowed && delayMs > 0) return `${colours.green("allowed")} in ${spellMs(delayMs)}${outage}`;
  if (allowed) return colours.green("allowed") + (rule === undefined ? ", no rule applies" : "") + outage;
  const wait = reason === "cost-exceeds-limit" ? "no wait will help" : `retry after ${spellMs(retryAfterMs)}`;
  return `${colours.red("refused")} by ${printable(`${rule}: ${reason}, ${wait}${outage}`)}`;
}
