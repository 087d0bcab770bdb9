/**
 * Warns about rules that match a model name in capital letters: the LLM gateway lower-cases model names, so such a rule never matches there
 * and limits nothing. Logged once per rule; the rule may still be meant for the check API.
 */
import type { Limiter, Match, Rule } from "sluice";
import { modelName } from "../enforcement/proxy/usage/call-path.js";
import type { Log } from "../log.js";

const MOST_NOTED = 1_000;

export function noteModelLetters(limiter: Pick<Limiter, "on" | "rules">, log: Pick<Log, "warn">): void {
  const noted = new Set<string>();
  const look = (rules: readonly Rule[]): void => {
    for (const rule of rules) {
      if (noted.has(rule.id) || noted.size === MOST_NOTED) continue;
      const matches: (Match | undefined)[] = [rule.match];
      if ("overrides" in rule) matches.push(...(rule.overrides ?? []).map(({ match }) => match));
      if (!matches.some(hasCapitals)) continue;
      noted.add(rule.id);
      log.warn("a rule matches a model in capital letters, and the LLM gateway's models are in small ones", {
        rule: rule.id,
      });
    }
  };
  look(limiter.rules);
  limiter.on("rules", look);
}

function hasCapitals(match: Match | undefined): boolean {
  const values = [match?.model ?? ""].flat();
  return values.some((value) => typeof value === "string" && value !== modelName(value));
}
