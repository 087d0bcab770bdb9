/**
 * `sluice settle ID tokens=120`, `sluice extend ID tokens=900`, `sluice cancel ID`: settles, extends or cancels a reservation from a check.
 */
import type { Command } from "commander";
import type { Settlement } from "sluice";
import { ownField } from "../own-fields.js";
import { printable } from "../printable.js";
import { parseAttributes } from "./attribute-arguments.js";
import { showDecision, type ToldDecision } from "./check.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import { figure, printJson, printLine } from "./print.js";
import { type ClientOptions, clientCommand, post } from "./service-client.js";

type Options = ClientOptions & { json: boolean };

export function settleCommand(): Command {
  return costCommand("settle")
    .description("charge what a reserved request really cost; again, the same answer and no second charge")
    .action(async (reservation: string, given: string[], options: Options) => {
      show(await post("/v1/settle", { reservation, attributes: parseAttributes(given) }, options), options);
    });
}

export function extendCommand(): Command {
  return costCommand("extend")
    .description("hold more for a reservation, up to these costs in all; exit status 3 if refused")
    .action(async (reservation: string, given: string[], options: Options) => {
      const answer = await post("/v1/extend", { reservation, attributes: parseAttributes(given) }, options);
      const decision = answer as unknown as ToldDecision;
      if (options.json) printJson(decision);
      else showDecision(decision);
      if (!decision.allowed) throw new CommandFailure("", exitStatus.refused);
    });
}

export function cancelCommand(): Command {
  return clientCommand("cancel")
    .description("settle a reservation at 0: the work was not done")
    .argument("<reservation>", "the reservation's id")
    .action(async (reservation: string, options: Options) => {
      show(await post("/v1/cancel", { reservation }, options), options);
    });
}

function costCommand(name: string): Command {
  return clientCommand(name)
    .argument("<reservation>", "the reservation's id")
    .argument("<costs...>", "the costs by attribute, such as completion_tokens=120");
}

function show(answer: unknown, { json }: Options): void {
  if (json) {
    printJson(answer);
    return;
  }
  const { settled, charged, overrun, reason } = answer as Settlement;
  printLine(settled ? "settled" : printable(`not settled: ${reason}`));
  for (const [rule, units] of Object.entries(charged)) {
    const over = ownField(overrun, rule);
    const beyond = over === undefined ? "" : `, ${figure(over)} of them beyond what was held`;
    printLine(printable(`  ${rule}: ${figure(units)}${beyond}`));
  }
}
