/** Load charts of a rule: utilisation by signal, refusals by class, the adaptive limit, and waits. */
import { useMemo } from "react";
import type { AdaptiveView, LoadView, Series, SheddingView, WaitingView } from "../api/shapes.js";
import { Chart, type Line } from "../components/chart.js";
import type { Mark } from "../components/figures.js";
import { axisRate, axisUnit, rate, share, wait, withUnit } from "../components/format.js";
import { Empty } from "../components/panel.js";
import { SECOND_MS, stepRates } from "../components/step-rates.js";

type Steps = LoadView["steps"];

export const signalNames: Readonly<Record<string, string>> = {
  inflight: "In flight",
  "event-loop": "Event loop",
  reported: "Reported",
};
const signalMarks: Readonly<Record<string, Mark>> = {
  inflight: "latency",
  "event-loop": "candidate",
  reported: "shadow",
};
const classMarks: readonly Mark[] = ["refused", "shadow", "candidate", "latency", "allowed"];

const isKnown = (values: Series): boolean => values.some((value) => value !== null);
const timesOf = (steps: Steps): number[] => steps.map(({ atMs }) => atMs);

export function UtilisationChart({ rule, steps }: { rule: SheddingView; steps: Steps }) {
  const timesMs = useMemo(() => timesOf(steps), [steps]);
  const lines = useMemo<Line[]>(
    () =>
      rule.signals.map((signal) => ({
        mark: signalMarks[signal] ?? "allowed",
        label: signalNames[signal] ?? signal,
        values: rule.utilisation[signal] ?? [],
        isArea: rule.signals.length === 1,
      })),
    [rule],
  );
  if (!lines.some(({ values }) => isKnown(values))) {
    return <Empty title="No utilisation is known of this time.">{hintOf(rule)}</Empty>;
  }
  return <Chart label={`Utilisation under ${rule.rule}`} timesMs={timesMs} lines={lines} format={share} height={190} />;
}

function hintOf({ signals }: SheddingView): string {
  return signals.length === 1 && signals[0] === "reported"
    ? "Report it: POST /v1/utilisation, or limiter.reportUtilisation()."
    : "It is measured from the first request on.";
}

/** Shows the rule's first classes; the table next to it has all. */
export function ShedChart({ rule, steps }: { rule: SheddingView; steps: Steps }) {
  const timesMs = useMemo(() => timesOf(steps), [steps]);
  const lines = useMemo<Line[]>(
    () =>
      rule.classes.slice(0, classMarks.length).map(({ name, shedBy }, i) => ({
        mark: classMarks[i]!,
        label: name,
        values: stepRates(shedBy, steps, SECOND_MS),
      })),
    [rule, steps],
  );
  if (!lines.some(({ values }) => isKnown(values))) return <Empty title="Nothing is known of this time." />;
  return (
    <Chart
      label={`Shed a second by class under ${rule.rule}`}
      timesMs={timesMs}
      lines={lines}
      format={(value) => `${rate(value)}/s`}
      axisFormat={axisRate}
      height={190}
    />
  );
}

export function LimitChart({ rule, steps }: { rule: AdaptiveView; steps: Steps }) {
  const timesMs = useMemo(() => timesOf(steps), [steps]);
  const lines = useMemo<Line[]>(() => {
    const level = (value: number): number[] => steps.map(() => value);
    return [
      { mark: "latency", label: "Limit in force", values: rule.limit, isArea: true },
      { mark: "allowed", label: "Max", values: level(rule.max), isDashed: true },
      { mark: "refused", label: "Min", values: level(rule.min), isDashed: true },
    ];
  }, [rule, steps]);
  if (!isKnown(rule.limit)) return <Empty title="Nothing is known of this time." />;
  return (
    <Chart
      label={`The limit of ${rule.rule}`}
      timesMs={timesMs}
      lines={lines}
      format={(value) => withUnit(value, rule.unit)}
      axisFormat={(value) => axisUnit(value, rule.unit)}
      height={190}
    />
  );
}

export function TargetChart({ rule, steps }: { rule: AdaptiveView; steps: Steps }) {
  const timesMs = useMemo(() => timesOf(steps), [steps]);
  const lines = useMemo<Line[]>(
    () => [
      { mark: "candidate", label: "Utilisation", values: rule.utilisation, isArea: true },
      { mark: "shadow", label: "Target", values: steps.map(() => rule.target), isDashed: true },
    ],
    [rule, steps],
  );
  if (!isKnown(rule.utilisation)) {
    return (
      <Empty title="No utilisation is known of this time.">
        {rule.signals.includes("reported") && "Report it: POST /v1/utilisation, or limiter.reportUtilisation()."}
      </Empty>
    );
  }
  return <Chart label={`Utilisation for ${rule.rule}`} timesMs={timesMs} lines={lines} format={share} height={190} />;
}

export function WaitChart({ rule, steps }: { rule: WaitingView; steps: Steps }) {
  const timesMs = useMemo(() => timesOf(steps), [steps]);
  const lines = useMemo<Line[]>(
    () => [{ mark: "latency", label: "Mean wait of booked turns", values: rule.waitMsBy, isArea: true }],
    [rule],
  );
  if (!isKnown(rule.waitMsBy)) return <Empty title="No turn was booked in this time." />;
  return <Chart label={`Waits under ${rule.rule}`} timesMs={timesMs} lines={lines} format={wait} height={150} />;
}
