/**
 * Tokens and money of a language model: a call holds what it may take at most, and is charged what it took.
 * All four rules are decided at once: a call that has no budget left takes no place either.
 *
 *   node examples/recipes/llm-tokens.mjs
 */
import { readFileSync } from "node:fs";
import { createLimiter } from "sluice";
import { virtualClock } from "sluice/testing";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("llm-tokens.yaml", import.meta.url), "utf8"));
const clock = virtualClock();
const limiter = createLimiter({ clock, rules });
const MICRODOLLARS_A_TOKEN = 2;

/** A model that answers with as many tokens as it is told. */
async function complete({ org, max_tokens, answers }) {
  const request = { org, stream: true, max_tokens, most_microdollars: max_tokens * MICRODOLLARS_A_TOKEN };
  const decision = await limiter.check(request);
  if (!decision.allowed) {
    const wait = Math.ceil(decision.retryAfterMs / 1000);
    return console.log(`refused by ${decision.violated.join(", ")} (${decision.reason}), again in ${wait} s`);
  }
  const { held } = decision.reservation;
  const used = { completion_tokens: answers, microdollars: answers * MICRODOLLARS_A_TOKEN };
  const { charged } = await limiter.settle(decision.reservation.id, used);
  await decision.lease.release();
  console.log(`held ${held["completion-tokens"]} tokens, charged ${charged["completion-tokens"]}`);
}

const org = "acme";
await complete({ org, max_tokens: 4_000, answers: 350 });
await complete({ org, max_tokens: 4_000, answers: 4_000 });
await complete({ org, max_tokens: 4_000, answers: 3_900 });
await complete({ org, max_tokens: 4_000, answers: 1 });
clock.advance("30s");
await complete({ org, max_tokens: 4_000, answers: 200 });
const { checks } = await limiter.peek({ org }, { cost: 0 });
const spend = checks.find(({ rule }) => rule === "spend");
console.log(`spent ${spend.limit - spend.remaining} of ${spend.limit} microdollars this month`);
await limiter.close();
