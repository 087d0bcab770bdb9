/**
 * A time chart on a canvas (uPlot), drawn in the theme's colours and described in words for screen readers.
 * In: times in milliseconds and one list of values a line. Out: the chart; the figures under the pointer stand in its legend.
 */
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "../styles/theme.js";
import { csvOf, fileName, pictureOf, save } from "./chart-files.js";
import { Legend, type Mark } from "./figures.js";
import { clockTime, currentZone, dateOf, dayTime, known, minuteTime } from "./format.js";
import { type Marker, Markers } from "./markers.js";

export interface Line {
  readonly mark: Mark;
  readonly label: string;
  /** Null where nothing is known: the line is broken there. */
  readonly values: readonly (number | null)[];
  /** Filled down to zero. */
  readonly isArea?: boolean;
  readonly isDashed?: boolean;
}

interface ChartProps {
  readonly label: string;
  readonly timesMs: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** Of the numbers at the axis, which have little room. Default: as the others. */
  readonly axisFormat?: (value: number) => string;
  readonly height?: number;
  readonly markers?: readonly Marker[];
  /** A stretch that was dragged over; absent: dragging does nothing. */
  readonly onZoom?: ((fromMs: number, toMs: number) => void) | undefined;
}

export function Chart(props: ChartProps) {
  const { label, timesMs, lines, format, axisFormat = format, height = 220, markers = [], onZoom } = props;
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [at, setAt] = useState<number | null>(null);
  const theme = useTheme();
  const data = useMemo<uPlot.AlignedData>(
    () => [timesMs.map((ms) => ms / 1000), ...lines.map(({ values }) => [...values])],
    [timesMs, lines],
  );
  const latest = useRef(data);
  latest.current = data;
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const canZoom = onZoom !== undefined;
  // The form of the lines, apart from their values: only a new form needs a new chart.
  const form = lines.map(({ mark, isArea, isDashed }) => `${mark} ${isArea} ${isDashed}`).join(",");

  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme and the form stand for what is drawn; values come by setData.
  useEffect(() => {
    const parent = frame.current!;
    const chart = new uPlot(
      optionsOf({ parent, lines, format: axisFormat, height, onMove: setAt, zoom: canZoom ? zoom : undefined }),
      latest.current,
      parent,
    );
    plot.current = chart;
    const observer = new ResizeObserver(() => chart.setSize({ width: parent.clientWidth, height }));
    observer.observe(parent);
    return () => {
      observer.disconnect();
      chart.destroy();
      plot.current = undefined;
    };
  }, [theme, form, height, canZoom]);

  useEffect(() => plot.current?.setData(data), [data]);

  const shown = at !== null && at < timesMs.length ? at : lastKnown(lines, timesMs.length);
  const isShort = (timesMs.at(-1) ?? 0) - (timesMs[0] ?? 0) < 3 * 3_600_000;
  const time = shown < 0 ? "" : (isShort ? clockTime : dayTime)(timesMs[shown]!);
  const items = lines.map(({ mark, label: name, values }) => ({
    mark,
    label: name,
    ...(shown >= 0 && { value: known(values[shown] ?? undefined, format) }),
  }));
  const saveNumbers = (): void => save(new Blob([csvOf(timesMs, lines)], { type: "text/csv" }), fileName(label, "csv"));
  const savePicture = (): void => {
    const colour = colourReader(frame.current!);
    const legend = lines.map(({ mark, label: name }) => ({ label: name, colour: colour(mark) }));
    const { canvas } = plot.current!.ctx;
    const picture = pictureOf({ canvas, title: label, legend, ink: colour("ink"), ground: colour("surface") });
    picture.toBlob((blob) => blob !== null && save(blob, fileName(label, "png")));
  };
  const described = items.map(({ label: name, value }) => `${name} ${value === "–" ? "unknown" : value}`).join(", ");
  return (
    <figure>
      <div className="toolbar">
        <Legend items={items} />
        <span className="soft small">{time}</span>
        <div className="chart-files">
          <button type="button" className="button small" onClick={savePicture}>
            PNG<span className="unseen"> of {label}</span>
          </button>
          <button type="button" className="button small" onClick={saveNumbers}>
            CSV<span className="unseen"> of {label}</span>
          </button>
        </div>
      </div>
      <div className="chart-frame">
        <div className="chart" ref={frame} role="img" aria-label={`${label}; at ${time}: ${described}`} />
        {markers.length > 0 && timesMs.length > 1 && <Markers markers={markers} timesMs={timesMs} />}
      </div>
    </figure>
  );
}

/** The newest place where any line has a value: the last step may not be known yet. */
function lastKnown(lines: readonly Line[], length: number): number {
  for (let i = length - 1; i >= 0; i--) if (lines.some(({ values }) => values[i] != null)) return i;
  return length - 1;
}

/** A value between two gaps has no line to either side: it is drawn as a dot. */
function lonePoints(chart: uPlot, series: number): number[] {
  const values = Array.from(chart.data[series] ?? []);
  return values.flatMap((value, i) => (value != null && values[i - 1] == null && values[i + 1] == null ? [i] : []));
}

function optionsOf({
  parent,
  lines,
  format,
  height,
  onMove,
  zoom,
}: Pick<ChartProps, "lines" | "format"> & {
  parent: HTMLElement;
  height: number;
  onMove: (at: number | null) => void;
  zoom: { readonly current: ChartProps["onZoom"] } | undefined;
}): uPlot.Options {
  const colour = colourReader(parent);
  const grid = { stroke: colour("line"), width: 1 };
  const axis = { stroke: colour("ink-soft"), grid, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width: parent.clientWidth,
    height,
    padding: [12, 24, 0, 0],
    legend: { show: false },
    // The address is changed, and the chart with it; uPlot itself does not zoom.
    cursor: { y: false, drag: { x: zoom !== undefined, y: false, setScale: false }, points: { size: 7 } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), currentZone() ?? "UTC"),
    hooks: {
      setCursor: [(chart) => onMove(chart.cursor.idx ?? null)],
      setSelect: [(chart) => zoomTo(chart, zoom?.current)],
    },
    scales: { y: { range: (_chart, _least, most) => [0, most > 0 ? most * 1.12 : 1] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 80,
        size: 28,
        values: (_chart, times, _at, _space, stepSeconds) =>
          times.map((seconds) => axisTime(seconds * 1_000, stepSeconds)),
      },
      { ...axis, size: 56, values: (_chart, values) => values.map(format) },
    ],
    series: [
      {},
      ...lines.map(
        ({ mark, isArea, isDashed }): uPlot.Series => ({
          stroke: colour(mark),
          width: 2,
          points: { show: true, size: 6, fill: colour(mark), filter: (chart, i) => lonePoints(chart, i) },
          ...(isArea && { fill: colour(mark, 16) }),
          ...(isDashed && { dash: [6, 4] }),
        }),
      ),
    ],
  };
}

/** Days are named at their first tick; clock times alone would repeat. */
function axisTime(atMs: number, stepSeconds: number): string {
  if (stepSeconds < 60) return clockTime(atMs);
  const minute = minuteTime(atMs);
  return minute === "00:00" ? dateOf(atMs) : minute;
}

/** A click is no drag. */
const SMALLEST_DRAG_PX = 8;

function zoomTo(chart: uPlot, zoom: ChartProps["onZoom"]): void {
  const { left, width } = chart.select;
  if (zoom === undefined || width < SMALLEST_DRAG_PX) return;
  const fromMs = chart.posToVal(left, "x") * 1_000;
  const toMs = chart.posToVal(left + width, "x") * 1_000;
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  zoom(fromMs, toMs);
}

/** A canvas knows no custom properties: the browser resolves them on an element first. */
function colourReader(parent: HTMLElement): (name: string, percent?: number) => string {
  return (name, percent = 100) => {
    parent.style.color = `color-mix(in srgb, var(--${name}) ${percent}%, transparent)`;
    const resolved = getComputedStyle(parent).color;
    parent.style.color = "";
    return resolved;
  };
}
