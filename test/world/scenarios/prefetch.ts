/** Units fetched ahead: hot keys on several instances, lost and late replies, crashes, cuts, refunds, resets, rule changes. */
import type { Rule } from "../../../packages/sluice/src/rules/rule.js";
import type { Plan, Scenario, Step } from "../plan.js";
import type { Random } from "../random.js";
import { crashes, cuts, inOrder, rough } from "./traffic.js";

export const prefetch: Scenario = {
  name: "prefetch",
  about: "units fetched ahead of hot keys: lost and late replies, crashes, cuts, refunds, resets, rule changes",
  plan(random: Random): Plan {
    const instances = random.whole(1, 8);
    const untilMs = random.between(1_000, 4_000);
    const rules = Array.from({ length: random.of([1, 1, 2]) }, (_, i) => prefetchRule(random, `rule-${i}`));
    const users = random.of([["ann"], ["ann", "bob"]]);
    const perMs = random.between(0.2, 2) / instances;
    const requests = Array.from({ length: instances }, (_, instance) =>
      arrivalsAt(random, perMs, untilMs).map((atMs) => ({ atMs, instance })),
    )
      .flat()
      .map(
        ({ atMs, instance }, i): Step => ({
          do: "check",
          atMs,
          instances: [instance],
          attributes: { user: random.of(users) },
          ...(random.chance(0.1) ? { cost: random.whole(0, 3) } : {}),
          ...(random.chance(0.02) ? { id: `id-${i}` } : {}),
          ...(random.chance(0.05) ? { refundAfterMs: random.between(0, 300) } : {}),
        }),
      );
    const resets = Array.from(
      { length: random.of([0, 0, 2]) },
      (): Step => ({
        do: "reset",
        atMs: random.between(0, untilMs),
        instance: random.whole(0, instances - 1),
        rule: random.of(rules).id,
        attributes: { user: "ann" },
      }),
    );
    const changes = Array.from({ length: random.of([0, 0, 2]) }).flatMap((): Step[] => {
      const atMs = random.between(0, untilMs);
      const changed = rules.map((rule): Rule => ({ ...rule, description: `since ${atMs}` }));
      return Array.from({ length: instances }, (_, instance) => ({
        do: "set-rules",
        atMs: atMs + random.between(0, 200),
        instance,
        rules: changed,
      }));
    });
    return {
      instances,
      countedInstances: instances,
      rules,
      faults: rough(random),
      deadlineMs: random.of([5, 20, 50, 200]),
      rememberRefusals: random.chance(0.5),
      driftPpm: random.of([0, 1_000]),
      localBound: () => Number.POSITIVE_INFINITY,
      steps: inOrder([
        ...requests,
        ...resets,
        ...changes,
        ...crashes(random, { instances, count: random.whole(0, 3), untilMs }),
        ...cuts(random, { instances, count: random.whole(0, 3), untilMs }),
      ]),
      endMs: untilMs + 3_000,
    };
  },
};

function prefetchRule(random: Random, id: string): Rule {
  const windowMs = random.of([250, 1_000, 3_000]);
  const limit = random.whole(5, 200);
  const base = { id, key: ["user"], limit, window: `${windowMs}ms`, prefetch: `${random.of([10, 20, 50, 100])}ms` };
  switch (random.of(["rolling-window", "rolling-window", "token-bucket", "gcra", "fixed-window"] as const)) {
    case "rolling-window":
      return { ...base, algorithm: "rolling-window", storage: random.of(["sorted-set", "packed"] as const) };
    case "token-bucket":
      return { ...base, algorithm: "token-bucket" };
    case "gcra":
      return { ...base, algorithm: "gcra" };
    case "fixed-window":
      return { ...base, algorithm: "fixed-window" };
  }
}

function arrivalsAt(random: Random, perMs: number, untilMs: number): number[] {
  const times: number[] = [];
  for (let atMs = random.waitMs(perMs); atMs < untilMs; atMs += random.waitMs(perMs)) times.push(atMs);
  return times;
}
