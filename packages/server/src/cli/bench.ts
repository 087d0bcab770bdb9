/**
 * `sluice bench --rate 2000 --duration 30s`: load-tests a running service with real checks, which charge its counters.
 * Exit status 1 if the service does not answer or stops answering; refusals are results, not failures.
 */
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { type Command, Option } from "commander";
import { parseCount } from "./arguments.js";
import { parseCost } from "./attribute-arguments.js";
import { type BenchAnswer, BenchFigures } from "./bench-figures.js";
import { type LoadClock, runLoad } from "./bench-load.js";
import { type BenchOptions, type BenchPlan, benchDefaults, benchPlan, parseLength } from "./bench-plan.js";
import { type BenchResult, benchRows, notesOf } from "./bench-result.js";
import { type CheckSender, checkSender, type SenderAnswer } from "./bench-sender.js";
import type { ToldDecision } from "./check.js";
import type { CommandFailure } from "./command-failure.js";
import { noAnswer } from "./no-answer.js";
import { colours, figure, printJson, printLine, printTable } from "./print.js";
import { showProgress } from "./progress.js";
import { clientCommand, explainFailure } from "./service-client.js";

/** After this many consecutive failures the service is considered gone, and the load stops. */
const HOPELESS = 100;

export function benchCommand(): Command {
  return clientCommand("bench")
    .description("load-test a running service: throughput, latency, refusals; its checks charge counters")
    .argument(
      "[attributes...]",
      "attributes of the requests; {n} becomes the number of the key (default: user=bench-{n})",
    )
    .option("--requests <n>", "end after so many (default: 10000 if --duration is not given)", parseCount("--requests"))
    .option("--duration <time>", "end after so long (default: 10s if --requests is not given)", parseLength("duration"))
    .option(
      "--connections <n>",
      "one request in flight on each",
      parseCount("--connections"),
      benchDefaults.connections,
    )
    .option("--rate <n>", "requests a second, each measured from when it was due", parseCount("--rate"))
    .option("--keys <n>", "how many keys to spread over (default: 1000)", parseCount("--keys"))
    .option("--cost <n>", "what each request costs", parseCost)
    .addOption(
      new Option("--timeout <time>", "deadline of each request")
        .argParser(parseLength("timeout"))
        .default(benchDefaults.timeoutMs, "5s"),
    )
    .option("--yes", "also where the service is not on this machine", false)
    .action(async (given: string[], options: BenchOptions) => {
      const plan = benchPlan(given, options);
      const { result, failure } = await bench(plan);
      if (options.json) printJson(result);
      else show(result);
      if (failure !== undefined) throw failure;
    });
}

async function bench(plan: BenchPlan): Promise<{ result: BenchResult; failure: CommandFailure | undefined }> {
  const { server, rate, connections, keys } = plan;
  const sender = checkSender(plan);
  const figures = new BenchFigures();
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  let failure: CommandFailure | undefined;
  let failuresInRow = 0;
  const send = async (n: number, dueMs: number): Promise<void> => {
    const answer = await sender.send(plan.bodyOf(n));
    // Aborted by Ctrl-C: neither answered nor failed.
    if ("failure" in answer && stop.signal.aborted) return;
    figures.record(readAnswer(answer), performance.now() - dueMs);
    failuresInRow = "failure" in answer ? failuresInRow + 1 : 0;
    if ("failure" in answer && failuresInRow >= HOPELESS) {
      failure = noAnswer(server, new Error(answer.failure.message, { cause: answer.failure }));
      stop.abort();
    }
  };
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  stop.signal.addEventListener("abort", () => sender.close());
  try {
    await tryFirst(plan, sender);
    const before = performance.eventLoopUtilization();
    const endProgress = showProgress(progressOf(plan, figures));
    const run = await runLoad(plan, { clock, send, stop: stop.signal }).finally(endProgress);
    for (const { waitedMs, times } of run.unsent) figures.recordUnsent(waitedMs, times);
    const result: BenchResult = {
      server,
      loop: rate === undefined ? "closed" : "open",
      ...(rate !== undefined && { rate }),
      connections,
      keys,
      ended: failure !== undefined ? "failed" : run.ended === "stopped" ? "interrupted" : run.ended,
      ...figures.report(run.elapsedMs),
      clientUtilisation: Math.round(100 * performance.eventLoopUtilization(before).utilization) / 100,
    };
    return { result, failure };
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    sender.close();
  }
}

/** Sends one request at cost 0, which charges nothing: a wrong address, token or attribute is reported as by any command. */
async function tryFirst(plan: BenchPlan, sender: CheckSender): Promise<void> {
  const { server, token } = plan;
  const answer = await sender.send(JSON.stringify({ ...JSON.parse(plan.bodyOf(0)), cost: 0 }));
  if ("failure" in answer) {
    const { failure, isTimeout } = answer;
    const error = new Error(failure.message, { cause: failure });
    if (isTimeout) error.name = "TimeoutError";
    throw noAnswer(server, error);
  }
  if (!("decision" in readAnswer(answer))) throw explainFailure({ path: "/v1/check", server, token, ...answer });
}

function readAnswer(answer: SenderAnswer): BenchAnswer {
  if ("failure" in answer) {
    const { failure, isTimeout } = answer;
    return { error: isTimeout ? "timeout" : (failure.code ?? failure.message), waited: isTimeout };
  }
  const { status, text } = answer;
  let body: Partial<ToldDecision & { code: unknown }> | null;
  try {
    body = JSON.parse(text);
  } catch {
    return { error: `${status}, not JSON`, waited: true };
  }
  if (status === 200 && typeof body?.allowed === "boolean") return { decision: body as ToldDecision };
  return { error: typeof body?.code === "string" ? `${status} ${body.code}` : `${status}`, waited: true };
}

const clock: LoadClock = {
  now: () => performance.now(),
  async until(atMs, stop) {
    const waitMs = atMs - performance.now();
    // Timers may fire a millisecond late, which would count as latency: poll at the end.
    if (waitMs > 3) await sleep(waitMs - 2, undefined, { signal: stop }).catch(() => undefined);
    while (performance.now() < atMs && !stop.aborted) await nextTurn();
  },
};

function progressOf({ requests, durationMs }: BenchPlan, figures: BenchFigures): (seconds: number) => string {
  const count = Number.isFinite(requests) ? ` of ${figure(requests)}` : "";
  const length = Number.isFinite(durationMs) ? ` of ${figure(durationMs / 1_000)}` : "";
  return (seconds) => `${figure(figures.requests)}${count} requests, ${seconds}${length} s (ctrl-c ends it)`;
}

function show(result: BenchResult): void {
  const { server, loop, rate = 0, connections, keys } = result;
  const how = loop === "open" ? `open loop at ${figure(rate)} requests a second` : "closed loop";
  printLine(`${server}: ${how}, ${figure(connections)} connections, ${figure(keys)} keys; checks charge its counters`);
  printTable(["figure", "value"], benchRows(result));
  for (const note of notesOf(result)) printLine(colours.yellow(note));
}
