/** `sluice explain user=42`: the rules considered, why each matches or not, the stored state, and when the request would pass. */
import type { Command } from "commander";
import type { Explanation } from "sluice";
import { printable } from "../printable.js";
import { parseAttributes, parseCost } from "./attribute-arguments.js";
import { showDecision } from "./check.js";
import { figure, printJson, printLine, printTable } from "./print.js";
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

function show({ decision, rules, more }: Explanation): void {
  showDecision(decision);
  if (rules.length === 0) return;
  printLine("");
  const passing = new Set(decision.checks.filter(({ allowed }) => allowed).map(({ rule }) => rule));
  printTable(
    ["rule", "applies", "why", "stored", "next allowed"],
    rules.map(({ rule, matched, why, state, unit, degraded, nextAllowedAt = "-" }) => [
      rule,
      matched ? "yes" : "no",
      why,
      degraded !== undefined
        ? `unknown: answered by "${degraded}"`
        : state === undefined
          ? "-"
          : storedText(state, unit),
      passing.has(rule) ? "now" : nextAllowedAt,
    ]),
  );
  for (const { rule, unit = "requests", estimate } of rules) {
    if (estimate === undefined) continue;
    const { holds, learned, held, settled, overrun } = estimate;
    const known = learned === undefined ? "too little is known yet" : `learned ${learned}`;
    printLine(
      printable(
        `${rule} would hold ${holds} ${unit} (${known}); this instance: ${held} held, ${settled} settled, ${overrun} beyond what was held`,
      ),
    );
  }
  if (more !== undefined) printLine(`and ${more} more rules that do not apply`);
}

/** Formats the stored state, by the stores' own field names. */
const wordings: Readonly<Record<string, (value: number) => string>> = {
  count: (value) => `${figure(value)} counted`,
  missing: (value) => `${figure(value)} missing until it is full`,
  current: (value) => `${figure(value)} in this window`,
  previous: (value) => `${figure(value)} in the one before`,
  lastMs: (value) => `the last at ${new Date(value).toISOString()}`,
  latestEndMs: (value) => `all end by ${new Date(value).toISOString()}`,
};

function storedText(state: Readonly<Record<string, number>>, unit: string | undefined): string {
  if (Object.values(state).every((value) => value === 0)) return "nothing";
  const parts = Object.entries(state).filter(([name, value]) => value !== 0 || !name.endsWith("Ms"));
  const text = parts.map(([name, value]) => wordings[name]?.(value) ?? `${name} ${value}`).join(", ");
  return unit === undefined ? text : `${text} (${unit})`;
}
