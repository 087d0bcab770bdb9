/**
 * How the detectors do on real traffic with labelled anomalies (Numenta Anomaly Benchmark, see traces/README.md): windows found, and
 * alerts outside of any. The figures stand in docs/alerts.md, also where they are poor; SLUICE_DETECTION_TRACES=PATH measures all twelve series.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Measured, measure, readBenchmark, readTrace, type Trace } from "./real-traces.js";

const page = readFileSync(new URL("../../docs/alerts.md", import.meta.url), "utf8");
const aDay = ({ falseAlarms, days }: Measured): string => (falseAlarms / days).toFixed(2);

/** As the row of the page. `large`: the same traffic a hundred times, out of reach of the guard for low volumes. */
function rowOf(trace: Trace): string {
  const own = measure(trace);
  const large = measure(trace, { times: 100 });
  const tuned = measure(trace, { times: 100, above: 5 });
  const cells = [own, large, tuned].flatMap((one) => [`${one.found} of ${one.windows}`, aDay(one)]);
  return `| \`${trace.name}\` | ${cells.join(" | ")} |`;
}

test("requests of a load balancer: windows found and false alarms are as docs/alerts.md says", () => {
  const row = rowOf(readTrace("elb_request_count_8c0756"));
  console.log(row);
  expect(page.split("\n")).toContain(row);
}, 120_000);

test("what is kept of a trace is what the benchmark has", () => {
  const trace = readTrace("elb_request_count_8c0756");
  // Two weeks by five minutes, eight of them missing in the recording.
  expect([trace.stepMinutes, trace.counts.length, trace.windows.length]).toEqual([5, 4_040, 2]);
  const folder = process.env.SLUICE_DETECTION_TRACES;
  if (folder === undefined) return;
  const traces = readBenchmark(folder);
  expect(traces.find(({ name }) => name === trace.name)).toEqual(trace);
  console.log(traces.map(rowOf).join("\n"));
}, 1_200_000);
