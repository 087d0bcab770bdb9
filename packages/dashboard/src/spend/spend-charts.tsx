/** Charts of units per minute: rules' counts, and estimates against settlements. */
import { useMemo } from "react";
import type { EstimateView, SpendRuleView, SpendView } from "../api/shapes.js";
import { Chart, type Line } from "../components/chart.js";
import type { Mark } from "../components/figures.js";
import { axisUnit, withUnit } from "../components/format.js";
import { Empty } from "../components/panel.js";
import { MINUTE_MS, stepRates } from "../components/step-rates.js";

type Steps = SpendView["steps"];

const marks: readonly Mark[] = ["latency", "allowed", "candidate", "shadow", "refused"];

/** For one unit; the first rules only. */
export function SpentChart({ rules, unit, steps }: { rules: readonly SpendRuleView[]; unit: string; steps: Steps }) {
  const timesMs = useMemo(() => steps.map(({ atMs }) => atMs), [steps]);
  const lines = useMemo<Line[]>(
    () =>
      rules.slice(0, marks.length).map(({ rule, spentBy = [] }, i) => ({
        mark: marks[i]!,
        label: rule,
        values: stepRates(spentBy, steps, MINUTE_MS),
        isArea: rules.length === 1,
      })),
    [rules, steps],
  );
  if (!steps.some(({ coveredMs }) => coveredMs > 0)) return <Empty title="Nothing is known of this time." />;
  return (
    <Chart
      label={`Spent ${unit} a minute, by rule`}
      timesMs={timesMs}
      lines={lines}
      format={(value) => `${withUnit(value, unit)}/min`}
      axisFormat={(value) => axisUnit(value, unit)}
      height={200}
    />
  );
}

export function EstimateChart({ estimate, unit, steps }: { estimate: EstimateView; unit: string; steps: Steps }) {
  const timesMs = useMemo(() => steps.map(({ atMs }) => atMs), [steps]);
  const lines = useMemo<Line[]>(
    () => [
      { mark: "candidate", label: "Held", values: stepRates(estimate.heldBy, steps, MINUTE_MS), isDashed: true },
      { mark: "latency", label: "Settled", values: stepRates(estimate.settledBy, steps, MINUTE_MS), isArea: true },
      { mark: "refused", label: "Beyond what was held", values: stepRates(estimate.overrunBy, steps, MINUTE_MS) },
    ],
    [estimate, steps],
  );
  if (!steps.some(({ coveredMs }) => coveredMs > 0)) return <Empty title="Nothing is known of this time." />;
  return (
    <Chart
      label="Estimate against actual"
      timesMs={timesMs}
      lines={lines}
      format={(value) => `${withUnit(value, unit)}/min`}
      axisFormat={(value) => axisUnit(value, unit)}
      height={200}
    />
  );
}
