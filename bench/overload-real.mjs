/**
 * The scenarios of `overload-model.mjs` on a real Node server under real load: Express before places that work (`overload-server.mjs`, a
 * process of its own), and callers that do not wait for each other. In the same run `sluice/express` with `limit: auto`, nothing, a static
 * limit, the published formulas of Gradient2 and Envoy, and, where it is installed, a real Envoy with its adaptive concurrency filter before
 * the bare server.
 *
 * The server must be able to refuse all that is offered: it does 200 requests a second, so that ten times as many refusals are a part of one
 * core. What the event loops of both processes were busy with, and how late the generator sent, is printed beside the result: a run
 * in which either is near 100 % measures the machine.
 *   node bench/overload-real.mjs [--quick] [--trace] [--scenario NAME]… [--guard NAME]…
 *   node bench/overload-real.mjs --guard sluice    every scenario, with its bars: nine minutes
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Connections } from "./overload-connections.mjs";
import { hasEnvoy, startEnvoy } from "./overload-envoy.mjs";
import { inRealTime, randomOf, scenarios, Traffic } from "./overload-model.mjs";
import { playedSeconds, Tally } from "./overload-tally.mjs";

const SERVER = fileURLToPath(new URL("overload-server.mjs", import.meta.url));
const guards = [
  "none",
  "static",
  "static with a queue",
  "Gradient2",
  "Envoy's formula",
  "Envoy",
  "sluice",
  "sluice, event loop too",
];

/** `onResult` sees each run as it ends. */
export async function realOverload({ quick, only = [], guarded = [], onResult }) {
  const played = scenarios.filter(({ name }) => (only.length === 0 ? !quick || name === "10x" : only.includes(name)));
  const by = guarded.length > 0 ? guarded : quick ? ["none", "sluice"] : guards;
  const results = [];
  for (const scenario of played) {
    for (const guard of by) {
      if (guard === "Envoy" && !hasEnvoy()) continue;
      const result = { scenario: scenario.name, guard, ...(await runOne(inRealTime(scenario), guard)) };
      results.push(result);
      onResult?.(result);
    }
  }
  return results;
}

async function runOne(scenario, guard) {
  const server = fork(SERVER, [scenario.name, guard === "Envoy" ? "none" : guard]);
  const [{ port }] = await once(server, "message");
  const envoy = guard === "Envoy" ? await startEnvoy(port) : undefined;
  try {
    const callers = new Callers({ scenario, port: envoy?.port ?? port });
    server.send("begin");
    await callers.run();
    server.send("report");
    const [{ drawnMeanMs, ...used }] = await once(server, "message");
    return { ...callers.outcome(drawnMeanMs), ...used };
  } finally {
    await envoy?.stop();
    server.kill();
    await once(server, "exit");
  }
}

/** Sends what a scenario offers, each request when it is due, whatever became of those before it. */
class Callers {
  #startMs = 0;
  #scenario;
  #seconds;
  #traffic;
  #tally;
  #connections;
  #offered = 0;
  #attempts = 0;
  #open = 0;
  #busy = 0;
  /** How late requests were sent. */
  #lateMs = [];

  constructor({ scenario, port }) {
    const { meanMs } = scenario;
    this.#scenario = scenario;
    this.#seconds = playedSeconds(scenario, meanMs);
    this.#traffic = new Traffic(scenario, randomOf(7), meanMs);
    this.#tally = new Tally(scenario, meanMs);
    this.#connections = new Connections(port);
  }

  async run() {
    const endMs = this.#seconds * 1000;
    const before = performance.eventLoopUtilization();
    this.#startMs = performance.now();
    for (let dueMs = this.#traffic.nextMs(0); dueMs < endMs; dueMs = this.#traffic.nextMs(dueMs)) {
      for (let aheadMs = dueMs - this.#nowMs(); aheadMs > 0; aheadMs = dueMs - this.#nowMs()) {
        await new Promise((resolve) => setTimeout(resolve, aheadMs));
      }
      this.#lateMs.push(this.#nowMs() - dueMs);
      const caller = this.#traffic.caller();
      this.#offered++;
      this.#tally.asked(caller, this.#nowMs());
      this.#send(caller, 0);
    }
    this.#busy = performance.eventLoopUtilization(before).utilization;
    const lastMs = this.#nowMs() + this.#tally.deadlineMs(endMs);
    while (this.#open > 0 && this.#nowMs() < lastMs) await new Promise((resolve) => setTimeout(resolve, 50));
    this.#connections.close();
  }

  /** `drawnMeanMs`: what serving one request took. */
  outcome(drawnMeanMs) {
    const { p99, unloadedP99, ...outcome } = this.#tally.outcome(undefined, drawnMeanMs);
    this.#lateMs.sort((a, b) => a - b);
    return {
      ...outcome,
      p99: p99 / unloadedP99,
      offered: this.#offered / this.#seconds,
      attempted: this.#attempts / this.#seconds,
      generatorBusy: this.#busy,
      lateMs: this.#lateMs[Math.floor(0.99 * this.#lateMs.length)],
    };
  }

  #nowMs() {
    return performance.now() - this.#startMs;
  }

  #send(caller, tries) {
    const sentMs = this.#nowMs();
    this.#attempts++;
    this.#open++;
    const fields = `x-criticality: ${caller.class}\r\nx-user: ${caller.user}\r\nx-tenant: ${caller.tenant}`;
    this.#connections.send(`GET / HTTP/1.1\r\nhost: bench\r\n${fields}\r\n\r\n`, (status) => {
      this.#open--;
      if (status === 200) this.#tally.served(caller, sentMs, this.#nowMs());
      else if (tries < (this.#scenario.retries ?? 0)) {
        setTimeout(() => this.#send(caller, tries + 1), this.#traffic.pauseMs());
      }
    });
  }
}

const HEAD = "Overload of a real Node server (places that work behind Express), open loop, in real time";

export function printReal(results) {
  console.log(`\n${HEAD}`);
  for (const result of results) printOne(result);
}

function printOne({ scenario, guard, limits, ...found }) {
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const { goodput, critical, p99, oscillation, noisyShare, offered, attempted, busy, cpu, generatorBusy, lateMs } =
    found;
  const noisy = noisyShare > 0 ? `, noisy tenant ${percent(noisyShare)}` : "";
  const auto = limits.length === 0 ? "" : `, limit ${limits.at(-1)?.toFixed(1)}`;
  console.log(
    `  ${scenario}, ${guard}: goodput ${percent(goodput)}, critical ${percent(critical)}, p99 ${p99.toFixed(2)} x idle, ` +
      `oscillation ${percent(oscillation)}${noisy}${auto} (${offered.toFixed(0)} requests a second, ${attempted.toFixed(0)} tries; ` +
      `server busy ${percent(busy)}, its processor time ${percent(cpu)}, generator ${percent(generatorBusy)}, late ${lateMs.toFixed(1)} ms)`,
  );
  if (guard.startsWith("sluice")) console.log(`    bars: ${barsOf(scenario, found).map(barText).join(", ")}`);
  if (process.argv.includes("--trace")) console.log(`    limit by second: ${limits.map(Math.round).join(" ")}`);
}

/** What the estimate must hold in a scenario. */
function barsOf(name, { goodput, critical, p99, oscillation, noisyShare }) {
  const { allCritical, tenants } = scenarios.find((scenario) => scenario.name === name);
  const is10x = name === "10x";
  return [
    { what: "goodput", value: goodput, least: is10x ? 0.95 : 0.9 },
    ...(allCritical ? [] : [{ what: "critical", value: critical, least: is10x ? 0.999 : 0.99 }]),
    { what: "p99", value: p99, most: 2 },
    { what: "oscillation", value: oscillation, most: 0.1 },
    ...(tenants === undefined ? [] : [{ what: "noisy tenant", value: noisyShare, most: 1.1 / tenants.length }]),
  ];
}

function isMet({ value, least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY }) {
  return value >= least && value <= most;
}

function barText(bar) {
  const { what, value, least, most } = bar;
  const bound = least === undefined ? `at most ${most}` : `at least ${least}`;
  return `${what} ${value.toFixed(3)} ${isMet(bar) ? "met" : "MISSED"} (${bound})`;
}

function valuesOf(flag) {
  return process.argv.flatMap((value, i) => (process.argv[i - 1] === flag ? [value] : []));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const quick = process.argv.includes("--quick");
  const unknown = valuesOf("--scenario").filter((asked) => !scenarios.some(({ name }) => name === asked));
  if (unknown.length > 0) throw new Error(`no scenario is named ${unknown.join(", ")}`);
  console.log(HEAD);
  const beganMs = performance.now();
  const results = await realOverload({
    quick,
    only: valuesOf("--scenario"),
    guarded: valuesOf("--guard"),
    onResult: printOne,
  });
  const missed = results
    .filter(({ guard }) => guard.startsWith("sluice"))
    .flatMap((result) => barsOf(result.scenario, result).filter((bar) => !isMet(bar)));
  const minutes = (performance.now() - beganMs) / 60_000;
  console.log(`  ${results.length} runs in ${minutes.toFixed(1)} minutes; bars missed by Sluice: ${missed.length}`);
}
