/** A bar chart for the terminal: one column per step, with refusals stacked on top in their own colour. Pure. */
import { endsOf, type Series } from "../analysis/time-series.js";

interface ChartPaint {
  green(text: string): string;
  red(text: string): string;
  dim(text: string): string;
}

const HEIGHT = 8;
const LEVELS = " ▁▂▃▄▅▆▇█";

/** Rows of `[requests, refused]`; at most `columns` wide. */
export function drawChart(series: Series, columns: number, paint: ChartPaint): string[] {
  const { stepMs, rows } = series;
  if (rows.length === 0) return [];
  const joined = fit(rows, columns - 10);
  const perColumn = Math.ceil(rows.length / joined.length);
  const highest = Math.max(...joined.map(([requests]) => requests!));
  if (highest === 0) return [];
  const lines: string[] = [];
  for (let level = HEIGHT - 1; level >= 0; level--) {
    const cells = joined.map(([requests, refused]) => cell(requests!, refused!, { level, highest, paint }));
    const label = level === HEIGHT - 1 ? spellRate((highest * 1000) / (stepMs * perColumn)) : level === 0 ? "0/s" : "";
    lines.push(`${paint.dim(label.padStart(9))} ${cells.join("")}`);
  }
  const { from, to } = endsOf(series);
  const gap = Math.max(1, joined.length - from.length - to.length);
  lines.push(`${" ".repeat(10)}${paint.dim(`${from}${" ".repeat(gap)}${to}`)} ${paint.dim("UTC")}`);
  return lines;
}

/** Admitted requests below, refusals on top. */
function cell(
  requests: number,
  refused: number,
  { level, highest, paint }: { level: number; highest: number; paint: ChartPaint },
): string {
  const total = (requests / highest) * HEIGHT;
  const admitted = ((requests - refused) / highest) * HEIGHT;
  const filled = Math.min(1, Math.max(0, total - level));
  const mark = LEVELS[Math.ceil(filled * (LEVELS.length - 1))]!;
  if (mark === " ") return mark;
  return admitted > level + filled / 2 ? paint.green(mark) : paint.red(mark);
}

function fit(rows: Series["rows"], columns: number): number[][] {
  const perColumn = Math.max(1, Math.ceil(rows.length / Math.max(10, columns)));
  const joined: number[][] = [];
  for (let i = 0; i < rows.length; i += perColumn) {
    const part = rows.slice(i, i + perColumn);
    joined.push([0, 1].map((column) => part.reduce((sum, row) => sum + row[column]!, 0)));
  }
  return joined;
}

function spellRate(perSecond: number): string {
  if (perSecond >= 10_000) return `${Math.round(perSecond / 1_000)}k/s`;
  return perSecond >= 10 ? `${Math.round(perSecond)}/s` : `${perSecond.toFixed(1)}/s`;
}
