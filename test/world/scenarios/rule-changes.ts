/** Rules change during traffic: limits move and come back, instances have them one after another, counters are reset. */
import type { Rule } from "../../../packages/sluice/src/rules/rule.js";
import type { Plan, Scenario, Step } from "../plan.js";
import type { Random } from "../random.js";
import { arrivals, countingRule, crashes, inOrder, rough } from "./traffic.js";

export const ruleChanges: Scenario = {
  name: "rule-changes",
  about: "setRules and reset during traffic, instance by instance",
  plan(random: Random): Plan {
    const instances = random.whole(1, 6);
    const untilMs = random.of([5_000, 20_000]);
    // Of a bucket the limit is the rate too: an edit changes how fast an old debt is paid, which the oracle does not follow.
    const rules = Array.from({ length: random.whole(1, 3) }, (_, i) => windowRule(random, `rule-${i}`));
    const requests = arrivals(random, { count: random.whole(50, 300), untilMs }).map(
      (atMs, i): Step => ({
        do: "check",
        atMs,
        instances: [random.whole(0, instances - 1), random.whole(0, instances - 1)],
        attributes: { user: random.of(["ann", "bob"]) },
        ...(random.chance(0.3) ? { cost: random.whole(0, 3) } : {}),
        ...(random.chance(0.3) ? { id: `id-${i}` } : {}),
      }),
    );
    const changes = Array.from({ length: random.whole(1, 5) }).flatMap((): Step[] => {
      const atMs = random.between(0, untilMs);
      const changed = rules.map((rule): Rule => ({ ...rule, limit: random.whole(1, 12) }));
      return Array.from({ length: instances }, (_, instance) => ({
        do: "set-rules",
        atMs: atMs + random.between(0, 1_000),
        instance,
        rules: changed,
      }));
    });
    const resets = Array.from(
      { length: random.whole(0, 4) },
      (): Step => ({
        do: "reset",
        atMs: random.between(0, untilMs),
        instance: random.whole(0, instances - 1),
        rule: random.of(rules).id,
        attributes: { user: "ann" },
      }),
    );
    return {
      instances,
      countedInstances: instances,
      rules,
      faults: rough(random),
      deadlineMs: 100,
      rememberRefusals: random.chance(0.5),
      driftPpm: 200,
      localBound: () => Number.POSITIVE_INFINITY,
      steps: inOrder([
        ...requests,
        ...changes,
        ...resets,
        ...crashes(random, { instances, count: random.whole(0, 2), untilMs }),
      ]),
      endMs: untilMs + 3_000,
    };
  },
};

function windowRule(random: Random, id: string): Rule {
  for (;;) {
    const rule = countingRule(random, id);
    if (rule.algorithm !== "token-bucket" && rule.algorithm !== "gcra") return rule;
  }
}
