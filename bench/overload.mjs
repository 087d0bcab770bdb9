/**
 * Overload: the scenario matrix in virtual time, Sluice's shipped shedder beside what others have published; what a shed request costs; and
 * a real Node server under real load.
 *   node bench/overload.mjs [--quick]
 *   node bench/overload.mjs --seeds 1001-1020    Sluice alone in the matrix, on these seeds: how often each bar was missed; with --real-rates at
 *                                                200 requests a second as in real time, with --all beside a number and the published formulas;
 *                                                --scenario NAME for one of them
 *   node bench/overload.mjs --shed-cost          what a shed request costs, alone
 */
import { fileURLToPath } from "node:url";
import { createLimiter, ruleBook } from "sluice";
import { LoadShedder } from "sluice/internal";
import { inRealTime, lateProcesses, runScenario, scenarios } from "./overload-model.mjs";
import { envoyGradient, gradient2, noLimiter, staticLimit, swinging } from "./overload-peers.mjs";
import { printReal, realOverload } from "./overload-real.mjs";
import { sluiceContestant } from "./overload-sluice.mjs";

const contestants = [
  ["none", () => noLimiter],
  [
    "static",
    ({ places }) =>
      () =>
        staticLimit(places),
  ],
  ["Gradient2", () => gradient2],
  ["Envoy", () => envoyGradient],
  ["sluice", (scenario) => sluiceContestant({ LoadShedder, ruleBook }, { limit: "auto", scenario })],
];

/** On many seeds. A number: 1.2 times the places, as the docs advise. */
const judged = [
  ["auto", (scenario) => sluiceContestant({ LoadShedder, ruleBook }, { limit: "auto", scenario })],
  [
    "a number",
    (scenario) => sluiceContestant({ LoadShedder, ruleBook }, { limit: Math.round(1.2 * scenario.places), scenario }),
  ],
  ["Gradient2", () => gradient2],
  ["Envoy", () => envoyGradient],
  ["swinging", (scenario) => () => swinging(scenario, { swing: 0.2, periodMs: 20_000, phase: 0 })],
];

/** In real time; all of them take three quarters of an hour with every contestant (`overload-real.mjs`). */
const PLAYED = ["10x", "4x, backend 3x slower from 15 s on", "idle, then 4x from 15 s on"];

export async function overloadSection({ quick }) {
  const seeds = quick ? [1] : [1, 2, 3];
  const matrix = scenarios.map((scenario) => ({
    scenario: scenario.name,
    outcomes: Object.fromEntries(
      contestants.map(([name, make]) => [
        name,
        worstOf(seeds.map((seed) => runScenario(scenario, make(scenario), seed))),
      ]),
    ),
  }));
  const real = await realOverload({
    quick,
    ...(!quick && { only: PLAYED, guarded: ["none", "static", "Envoy", "sluice"] }),
  });
  return { matrix, shedUs: shedCostUs(), real };
}

/** Of several runs the worst of each figure. */
function worstOf(outcomes) {
  const read = (name, pick) => pick(...outcomes.map((outcome) => outcome[name]));
  return {
    goodput: read("goodput", Math.min),
    critical: read("critical", Math.min),
    p99: read("p99", Math.max) / outcomes[0].unloadedP99,
    oscillation: read("oscillation", Math.max),
    noisyShare: read("noisyShare", Math.max),
  };
}

/** Processor time of a whole decision that sheds: attributes in, decision out. */
function shedCostUs() {
  const limiter = createLimiter({
    rules: [
      {
        id: "keep-serving",
        key: [],
        algorithm: "load-shedding",
        signal: ["inflight", "event-loop"],
        limit: 10,
        class: { attribute: "criticality", default: "normal" },
        fairBy: "tenant",
      },
      { id: "per-user", key: ["user"], algorithm: "token-bucket", limit: 100, window: "1m" },
    ],
  });
  const attributes = (i) => ({ user: `u${i % 1000}`, tenant: `t${i % 50}`, path: "/v1/things", method: "GET" });
  for (let i = 0; i < 100; i++) limiter.checkNow(attributes(i));
  const rounds = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    let shed = 0;
    for (let i = 0; i < 200_000; i++) if (!limiter.checkNow(attributes(i)).allowed) shed++;
    const { user, system } = process.cpuUsage(before);
    return (user + system) / shed;
  });
  return rounds.sort((a, b) => a - b)[2];
}

export function printOverload({ matrix, shedUs, real }) {
  console.log(
    "\nOverload in virtual time: goodput / critical requests served / p99 of admitted over that of an idle server",
  );
  console.log(`  ${"".padEnd(52)}${contestants.map(([name]) => name.padEnd(22)).join("")}`);
  const percent = (share) => `${(100 * share).toFixed(1)}`;
  for (const { scenario, outcomes } of matrix) {
    const cells = contestants.map(([name]) => {
      const { goodput, critical, p99 } = outcomes[name];
      return `${percent(goodput)} / ${percent(critical)} / ${p99.toFixed(1)}`.padEnd(22);
    });
    console.log(`  ${scenario.padEnd(52)}${cells.join("")}`);
  }
  const noisy = matrix.find(({ scenario }) => scenario.includes("tenants"));
  console.log(
    `  the tenant with ten times the traffic of 19 others gets, of its class: ${contestants
      .map(([name]) => `${name} ${percent(noisy.outcomes[name].noisyShare)} %`)
      .join(", ")}`,
  );
  console.log(shedCostText(shedUs));
  printReal(real);
}

function shedCostText(us) {
  return `  a request that is shed costs ${us.toFixed(2)} us of processor time, decision included`;
}

export function overloadBars({ matrix, shedUs }) {
  const own = matrix.map(({ scenario, outcomes }) => ({ scenario, ...outcomes.sluice }));
  const at10 = own.find(({ scenario }) => scenario === "10x");
  const mixed = own.filter(({ scenario }) => !scenario.includes("all of it critical"));
  const row = (what, wanted, measured, met) => ({ what, wanted, measured, met });
  const least = (name, list) => Math.min(...list.map((outcome) => outcome[name]));
  const most = (name, list) => Math.max(...list.map((outcome) => outcome[name]));
  return [
    row("overload: goodput at 10x", "at least 0.95", at10.goodput, at10.goodput >= 0.95),
    row("overload: goodput in every scenario", "at least 0.9", least("goodput", own), least("goodput", own) >= 0.9),
    row("overload: critical served at 10x", "at least 0.999", at10.critical, at10.critical >= 0.999),
    row(
      "overload: critical in every scenario",
      "at least 0.99",
      least("critical", mixed),
      least("critical", mixed) >= 0.99,
    ),
    row("overload: p99 of admitted over idle", "at most 2", most("p99", own), most("p99", own) <= 2),
    row("overload: a shed request, us", "at most 5", shedUs, shedUs <= 5),
  ];
}

/** Each scenario on many seeds: the worst and the median of each figure, and on how many seeds its bar was missed. */
function printSeeds(range, { isAtRealRates, isBesideOthers, only }) {
  const [first, last] = range.split("-").map(Number);
  const seeds = Array.from({ length: last - first + 1 }, (_, i) => first + i);
  console.log(`The matrix on ${seeds.length} seeds: worst, median, seeds that missed the bar`);
  for (const asWritten of [...scenarios, ...lateProcesses].filter(({ name }) => only === undefined || name === only)) {
    const scenario = isAtRealRates ? inRealTime(asWritten) : asWritten;
    for (const [name, make] of isBesideOthers ? judged : judged.slice(0, 1)) {
      const outcomes = seeds.map((seed) => {
        // Ranks are hashed anew every ten minutes of the wall clock: each seed has an hour of its own, the same in every run.
        Date.now = () => seed * 1e9;
        return runScenario(scenario, make(scenario), seed);
      });
      console.log(`  ${scenario.name.padEnd(52)}${name.padEnd(14)}${figuresOf(scenario, outcomes).join("; ")}`);
    }
  }
}

function figuresOf(scenario, outcomes) {
  const is10x = scenario.name === "10x";
  const figures = [
    figure("goodput", outcomes, ({ goodput }) => goodput, { least: is10x ? 0.95 : 0.9 }),
    scenario.allCritical
      ? ""
      : figure("critical", outcomes, ({ critical }) => critical, { least: is10x ? 0.999 : 0.99 }),
    figure("p99", outcomes, ({ p99, unloadedP99 }) => p99 / unloadedP99, { most: 2 }),
    figure("oscillation", outcomes, ({ oscillation }) => oscillation, { most: 0.1 }),
    scenario.tenants === undefined
      ? ""
      : figure("noisy tenant", outcomes, ({ noisyShare }) => noisyShare, { most: 1.1 / scenario.tenants.length }),
    figure("limit over places", outcomes, ({ limit }) => limit / scenario.places, { most: 4 }),
  ];
  return figures.filter((text) => text !== "");
}

function figure(name, outcomes, read, { least, most }) {
  const values = outcomes.map(read).sort((a, b) => a - b);
  const worst = least === undefined ? values.at(-1) : values[0];
  const missed = values.filter((value) => (least === undefined ? value > most : value < least)).length;
  return `${name} ${worst.toFixed(3)}, ${values[values.length >> 1].toFixed(3)}, ${missed}`;
}

const isProgram = process.argv[1] === fileURLToPath(import.meta.url);
if (isProgram && process.argv.includes("--seeds")) {
  printSeeds(process.argv[process.argv.indexOf("--seeds") + 1], {
    isAtRealRates: process.argv.includes("--real-rates"),
    isBesideOthers: process.argv.includes("--all"),
    only: process.argv.includes("--scenario") ? process.argv[process.argv.indexOf("--scenario") + 1] : undefined,
  });
} else if (isProgram && process.argv.includes("--shed-cost")) {
  console.log(shedCostText(shedCostUs()));
} else if (isProgram) {
  const section = await overloadSection({ quick: process.argv.includes("--quick") });
  printOverload(section);
  for (const { what, wanted, measured, met } of overloadBars(section)) {
    console.log(`  ${met ? "met   " : "NOT MET"} ${what}: ${measured.toFixed(3)}, wanted ${wanted}`);
  }
}
