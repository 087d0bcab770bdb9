/**
 * One run of a world: a scenario's plan for a seed, carried out in virtual time, judged after every event, and at the end brought to
 * rest, where nothing may be left.
 */
import { createHash } from "node:crypto";
import type { Check } from "../../packages/sluice/src/check.js";
import { Decision } from "../../packages/sluice/src/limiter/decision.js";
import { parseDuration } from "../../packages/sluice/src/rules/duration.js";
import { Clients } from "./clients.js";
import { Fleet } from "./fleet.js";
import { Judge } from "./judge.js";
import { Network } from "./network.js";
import type { LoadScenario, Plan, Scenario, Step } from "./plan.js";
import { mixSeed, Random } from "./random.js";
import { type LocalRule, Shares } from "./shares.js";
import { Simulation, Violation } from "./simulation.js";
import { StoreServer } from "./store-server.js";

/** How long the store may take to forget everything: a debt is paid at its rule's rate, a clock that was stepped back is waited for. */
const MOST_REST_MS = 10 * 86_400_000;
const REST_STEP_MS = 30_000;
const CLOSE_MS = 10_000;

export interface RunOptions {
  readonly scenario: Scenario | LoadScenario;
  readonly seed: number;
  /** The steps that are carried out; absent: all. */
  readonly keep?: ReadonlySet<number>;
  /** Receives every line of the event log. */
  readonly log?: (line: string) => void;
  /** A digest of the event log, to compare two runs. */
  readonly digest?: boolean;
}

export interface RunResult {
  readonly violation: string | undefined;
  readonly steps: number;
  readonly events: number;
  readonly requests: number;
  readonly byPolicy: number;
  readonly allowed: number;
  readonly charges: number;
  /** Decided from units that were fetched ahead. */
  readonly fromHand: number;
  readonly messages: { readonly sent: number; readonly lost: number; readonly doubled: number };
  /** Instances times virtual time. */
  readonly fleetHours: number;
  readonly digest: string | undefined;
}

export async function runWorld({ scenario, seed, keep, log, digest = false }: RunOptions): Promise<RunResult> {
  const hash = digest ? createHash("sha256") : undefined;
  const say = (line: string): void => {
    log?.(line);
    hash?.update(line);
  };
  const heard = log === undefined && hash === undefined ? undefined : say;
  if ("run" in scenario) return { ...(await scenario.run(seed, heard)), digest: hash?.digest("hex") };
  const plan = scenario.plan(new Random(mixSeed(seed, 0)));
  const simulation = new Simulation(seed);
  simulation.log = heard;
  const judge: Judge = new Judge({ simulation, storeMs: () => server.actor.clock.wallMs() });
  judge.sumsHours = plan.sumsHours ?? false;
  const server: StoreServer = new StoreServer(simulation, judge);
  const network = new Network(simulation, plan.faults);
  const fleet: Fleet = new Fleet({
    simulation,
    network,
    server,
    plan,
    onStart: (instance) => {
      instance.limiter.on("decision", (decision, request) => {
        judge.shares?.decided(instance, decision, request);
        if (decision.guarantee !== "prefetched") return;
        // One that a fetch's answer refused has used nothing.
        const { verdicts } = Decision.originOf(decision);
        const used = (request.checks as readonly Check[]).filter((_, i) => verdicts[i]!.charged);
        if (used.length > 0) judge.usedFromHand(decision, used);
      });
      instance.limiter.on("expired", (id) => judge.fail(judge.settlements.expired(id.split(".")[0]!)));
    },
  });
  judge.shares = new Shares({ simulation, rules: localRules(plan), bound: ({ limit }) => plan.localBound(limit) });
  const clients = new Clients({ simulation, fleet, judge });
  const world: World = { simulation, judge, server, network, fleet, clients, plan };
  let violation: string | undefined;
  try {
    await carryOut(world, keep);
    await comeToRest(world);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    violation = error.message;
  }
  const { sent, lost, doubled } = network;
  const { requests, byPolicy, allowed } = clients;
  return {
    violation,
    steps: plan.steps.length,
    events: simulation.events,
    requests,
    byPolicy,
    allowed,
    charges: judge.charges,
    fromHand: judge.fromHand,
    messages: { sent, lost, doubled },
    fleetHours: (plan.instances * simulation.nowMs) / 3_600_000,
    digest: hash?.digest("hex"),
  };
}

interface World {
  readonly simulation: Simulation;
  readonly judge: Judge;
  readonly server: StoreServer;
  readonly network: Network;
  readonly fleet: Fleet;
  readonly clients: Clients;
  readonly plan: Plan;
}

async function carryOut(world: World, keep: ReadonlySet<number> | undefined): Promise<void> {
  const { simulation, fleet, plan } = world;
  for (let i = 0; i < plan.instances; i++) {
    simulation.cause = -1 - i;
    fleet.start(i);
  }
  for (const [i, step] of plan.steps.entries()) {
    if (keep !== undefined && !keep.has(i)) continue;
    simulation.cause = i + 1;
    simulation.at(step.atMs, undefined, () => {
      if (simulation.log) simulation.say(`step ${i}: ${describeStep(step)}`);
      perform(world, step);
    });
  }
  await simulation.run(plan.endMs);
}

function perform(world: World, step: Step): void {
  const { simulation, judge, server, network, fleet, clients } = world;
  switch (step.do) {
    case "check":
      clients.ask(step);
      break;
    case "crash":
      fleet.crash(step.instance);
      break;
    case "start":
      fleet.start(step.instance);
      break;
    case "close":
      fleet.close(step.instance);
      break;
    case "cut":
    case "heal":
      cutOrHeal(world, step.instance, step.do);
      break;
    case "store-cut":
      network.cutOff(server.actor);
      break;
    case "store-heal":
      network.heal(server.actor);
      break;
    case "store-wipe":
      simulation.at(simulation.nowMs, server.actor, () => server.wipe());
      break;
    case "step-store-clock":
      judge.storeClockStepped(step.byMs);
      server.actor.clock.step(step.byMs);
      break;
    case "step-clock":
      fleet.clockOf(step.instance).step(step.byMs);
      break;
    case "set-rules":
      fleet.setRules(step.instance, step.rules);
      break;
    case "reset":
      reset(world, step);
  }
}

function cutOrHeal({ network, fleet }: World, instance: number, how: "cut" | "heal"): void {
  const actor = fleet.running.find(({ index }) => index === instance)?.actor;
  if (actor === undefined) return;
  if (how === "cut") network.cutOff(actor);
  else network.heal(actor);
}

function reset({ simulation, judge, fleet }: World, step: Step & { do: "reset" }): void {
  const instance = fleet.find(step.instance);
  if (instance === undefined) return;
  simulation.at(simulation.nowMs, instance.actor, () => {
    instance.limiter.reset(step.rule, step.attributes).then(
      () => judge.shares?.forget(instance),
      () => {},
    );
  });
}

/** Heals everything, waits until all that can end has ended, closes the limiters, and looks for what is left. */
async function comeToRest({ simulation, judge, server, network, fleet, clients, plan }: World): Promise<void> {
  network.faults = { ...network.faults, loss: 0, doubling: 0, stragglers: 0 };
  network.heal(server.actor);
  for (const { actor } of fleet.running) network.heal(actor);
  // Work under a lease of an instance's own fallback: the store knows nothing of it.
  await simulation.run(Math.max(simulation.nowMs, clients.endsMs));
  judge.sumAll((check) => server.look(check));
  const unsettled = plan.settlesAll === true ? judge.settlements.unsettled() : [];
  if (unsettled.length > 0) throw new Violation(`told and never settled: ${unsettled}`);
  const untilMs = simulation.nowMs + MOST_REST_MS;
  const left = (): number => server.memory().counters + server.memory().ids;
  for (let stepMs = REST_STEP_MS; left() > 0 && simulation.nowMs < untilMs; stepMs *= 2) {
    await simulation.run(simulation.nowMs + stepMs);
  }
  if (left() > 0) throw new Violation(`ten days after the last request the store still has ${left()} counters and ids`);
  for (const { index } of fleet.running) fleet.close(index);
  await simulation.run(simulation.nowMs + CLOSE_MS);
  for (const { actor } of fleet.all) {
    if (actor.timers.size > 0) throw new Violation(`${actor.name} is closed and still has ${actor.timers.size} timers`);
  }
}

function localRules({ rules }: Plan): LocalRule[] {
  return rules.flatMap((rule) =>
    rule.algorithm === "rolling-window" && (rule.onStoreFailure ?? "local") === "local"
      ? [{ rule: rule.id, limit: rule.limit, windowMs: parseDuration(rule.window)! }]
      : [],
  );
}

function describeStep(step: Step): string {
  if (step.do !== "set-rules") return JSON.stringify(step);
  return JSON.stringify({ ...step, rules: step.rules.map(({ id, limit }) => `${id}: ${limit}`) });
}
