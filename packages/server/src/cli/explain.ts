/** `sluice explain user=42`: which rules were considered, why each applies or not, what is stored, when it would pass. */
import type { Command } from "commander";
import type { Explanation } from "sluice";
import { parseAttributes, parseCost } from "./attribute-arguments.js";
import { showDecision } from "./check.js";
import { printJson, printLine, printTable } from "./print.js";
import { type ClientOptions, clientCommand, post } from "./service-client.js";

interface ExplainOptions extends ClientOptions {
  readonly cost?: number;
  readonly json: boolean;
}

export function explainCommand(): Command {
  return clientCommand("explain")
    .description("which rules a request meets, and why")
    .argument("[attributes...]", "attributes of the request, such as user=42")
    .option("--cost <n>", "what the request costs", parseCost)
    .action(async (given: string[], options: ExplainOptions) => {
      const body = { attributes: parseAttributes(given), ...(options.cost !== undefined && { cost: options.cost }) };
      const explanation = (await post("/v1/explain", body, options)) as unknown as Explanation;
      if (options.json) printJson(explanation);
      else show(explanation);
    });
}

function show({ decision, rules }: Explanation): void {
  showDecision(decision);
  if (rules.length === 0) return;
  printLine("");
  printTable(
    ["rule", "applies", "why", "stored", "next allowed"],
    rules.map(({ rule, matched, why, state, nextAllowedAt }) => [
      rule,
      matched ? "yes" : "no",
      why,
      state === undefined
        ? "-"
        : Object.entries(state)
            .map(([name, value]) => `${name} ${value}`)
            .join(", "),
      nextAllowedAt ?? "-",
    ]),
  );
}
