/**
 * Some worlds of every scenario, the same in each run. `npm run world` runs new seeds for as long as
 * you like, or one seed again with its event log.
 */
import { expect, test } from "vitest";
import { scenarios } from "./scenarios/all.js";
import { readWorldSettings } from "./settings.js";
import { shrink } from "./shrink.js";
import { type RunResult, runWorld } from "./world.js";

const settings = readWorldSettings(process.env);
const chosen = scenarios.filter(({ name }) => settings.scenario === undefined || name === settings.scenario);

/** Stands on one line, and is all that is needed to see the failure again. */
function repeatLine(scenario: string, seed: number, keep: readonly number[]): string {
  const kept = keep.length === 0 ? "" : ` --keep ${keep.join(",")}`;
  return `npm run world -- --scenario ${scenario} --seed ${seed}${kept}`;
}

test("the scenario exists", () => {
  expect(
    chosen.map(({ name }) => name),
    `known are ${scenarios.map(({ name }) => name).join(", ")}`,
  ).not.toEqual([]);
});

test("a seed gives the same event log, byte for byte", async () => {
  for (const scenario of chosen) {
    const [first, second] = [
      await runWorld({ scenario, seed: 7, digest: true }),
      await runWorld({ scenario, seed: 7, digest: true }),
    ];
    expect(second.digest, scenario.name).toBe(first.digest);
    expect(first.events).toBeGreaterThan(100);
  }
});

if (settings.seed === undefined) {
  test("no invariant breaks in any world", { timeout: (settings.ms ?? 0) + 300_000 }, () => runWorlds());
} else {
  test("one seed again, with its event log", () => repeat(settings.seed!));
}

async function repeat(seed: number): Promise<void> {
  const { keep } = settings;
  for (const scenario of chosen) {
    const lines: string[] = [];
    const log = (line: string): void => void lines.push(line);
    const { violation } = await runWorld({ scenario, seed, log, ...(keep === undefined ? {} : { keep }) });
    console.log(lines.join("\n"));
    expect(violation).toBeUndefined();
  }
}

/** Seed by seed, each in every scenario, until the time is over. */
async function runWorlds(): Promise<void> {
  const endMs = Date.now() + (settings.ms ?? 0);
  const isOver = (seeds: number): boolean =>
    settings.ms === undefined ? seeds >= settings.seeds : Date.now() >= endMs;
  const tallies = new Map(chosen.map(({ name }) => [name, newTally()]));
  let seed = settings.firstSeed;
  for (; !isOver(seed - settings.firstSeed); seed++) {
    for (const scenario of chosen) {
      const result = await runWorld({ scenario, seed });
      if (result.violation !== undefined) {
        const { keep, result: small } = await shrink({ scenario, seed }, result.steps);
        throw new Error(`${small.violation}\n${repeatLine(scenario.name, seed, keep)}`);
      }
      add(tallies.get(scenario.name)!, result);
    }
  }
  console.log(report(tallies, seed - settings.firstSeed));
}

interface Tally {
  requests: number;
  byPolicy: number;
  events: number;
  messages: number;
  lost: number;
  doubled: number;
  fleetHours: number;
}

function newTally(): Tally {
  return { requests: 0, byPolicy: 0, events: 0, messages: 0, lost: 0, doubled: 0, fleetHours: 0 };
}

function add(tally: Tally, { requests, byPolicy, events, messages, fleetHours }: RunResult): void {
  tally.requests += requests;
  tally.byPolicy += byPolicy;
  tally.events += events;
  tally.messages += messages.sent;
  tally.lost += messages.lost;
  tally.doubled += messages.doubled;
  tally.fleetHours += fleetHours;
}

function report(tallies: ReadonlyMap<string, Tally>, seeds: number): string {
  const rows = [...tallies].map(
    ([name, tally]) =>
      `| ${name} | ${tally.fleetHours.toFixed(0)} | ${tally.requests} | ${tally.byPolicy} | ${tally.messages} | ${tally.lost} | ${tally.doubled} |`,
  );
  const hours = [...tallies.values()].reduce((sum, { fleetHours }) => sum + fleetHours, 0);
  return [
    `worlds: seeds ${settings.firstSeed} to ${settings.firstSeed + seeds - 1}, ${hours.toFixed(0)} fleet-hours, no invariant broken`,
    "| scenario | fleet-hours | requests | by policy | messages | lost | doubled |",
    "|---|---|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}
