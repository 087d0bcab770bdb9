/**
 * uPlot as a React hook: created after layout, one chart per frame, recreated for another theme or form; values are updated by `setData`.
 * In: times in milliseconds and one list of values per line. Out: the element to render it in, and the chart once it exists.
 */
import { type RefObject, useEffect, useMemo, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "../styles/theme.js";
import type { Mark } from "./figures.js";
import { clockTime, currentZone, dateOf, minuteTime } from "./format.js";
import { inTurn } from "./in-turn.js";

export interface Line {
  readonly mark: Mark;
  readonly label: string;
  /** Null if unknown: breaks the line. */
  readonly values: readonly (number | null)[];
  /** Filled down to zero. */
  readonly isArea?: boolean;
  readonly isDashed?: boolean;
}

type Zoom = (fromMs: number, toMs: number) => void;

interface PlotProps {
  readonly timesMs: readonly number[];
  readonly lines: readonly Line[];
  /** Format of the axis labels. */
  readonly format: (value: number) => string;
  readonly height: number;
  readonly onMove: (at: number | null) => void;
  readonly onZoom: Zoom | undefined;
}

interface Plot {
  readonly frame: RefObject<HTMLDivElement | null>;
  readonly plot: RefObject<uPlot | undefined>;
}

export function usePlot({ timesMs, lines, format, height, onMove, onZoom }: PlotProps): Plot {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
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
  // The lines' appearance without their values: only a new form requires a new chart.
  const form = lines.map(({ mark, isArea, isDashed }) => `${mark} ${isArea} ${isDashed}`).join(",");

  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme and the form stand for what is drawn; values come by setData.
  useEffect(() => {
    const parent = frame.current!;
    let width = 0;
    let giveUp = (): void => undefined;
    const build = (): void => {
      const colour = colourReader(parent, theme);
      const drag = canZoom ? zoom : undefined;
      const options = optionsOf({ width, height, colour, lines, format, onMove, zoom: drag });
      plot.current = new uPlot(options, latest.current, parent);
    };
    // The observer also reports the initial width, after layout: reading it here would force another layout for each chart.
    const observer = new ResizeObserver(([entry]) => {
      width = entry!.contentRect.width;
      if (plot.current !== undefined) plot.current.setSize({ width, height });
      else {
        giveUp();
        giveUp = inTurn(build);
      }
    });
    observer.observe(parent);
    return () => {
      observer.disconnect();
      giveUp();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [theme, form, height, canZoom]);

  useEffect(() => plot.current?.setData(data), [data]);

  return { frame, plot };
}

/** A value between two gaps has no line to either side, so it is drawn as a dot. */
function lonePoints(chart: uPlot, series: number): number[] {
  const values = Array.from(chart.data[series] ?? []);
  return values.flatMap((value, i) => (value != null && values[i - 1] == null && values[i + 1] == null ? [i] : []));
}

interface DrawnProps extends Omit<PlotProps, "timesMs" | "onZoom"> {
  readonly width: number;
  readonly colour: ReadColour;
  readonly zoom: { readonly current: Zoom | undefined } | undefined;
}

function optionsOf({ width, height, colour, lines, format, onMove, zoom }: DrawnProps): uPlot.Options {
  const grid = { stroke: colour("line"), width: 1 };
  const axis = { stroke: colour("ink-soft"), grid, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width,
    height,
    padding: [12, 24, 0, 0],
    legend: { show: false },
    // Zooming changes the URL, and with it the chart; uPlot itself does not zoom.
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

/** Days are labelled at their first tick, as clock times alone would repeat. */
function axisTime(atMs: number, stepSeconds: number): string {
  if (stepSeconds < 60) return clockTime(atMs);
  const minute = minuteTime(atMs);
  return minute === "00:00" ? dateOf(atMs) : minute;
}

/** Shorter drags count as clicks. */
const SMALLEST_DRAG_PX = 8;

function zoomTo(chart: uPlot, zoom: Zoom | undefined): void {
  const { left, width } = chart.select;
  if (zoom === undefined || width < SMALLEST_DRAG_PX) return;
  const fromMs = chart.posToVal(left, "x") * 1_000;
  const toMs = chart.posToVal(left + width, "x") * 1_000;
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  zoom(fromMs, toMs);
}

type ReadColour = (name: string, percent?: number) => string;

/** Cached by theme, name and percentage: each look-up makes the browser compute styles. */
const colours = new Map<string, string>();

/** A canvas does not support custom properties: let the browser resolve them on an element. */
export function colourReader(parent: HTMLElement, theme: string): ReadColour {
  return (name, percent = 100) => {
    const key = `${theme} ${name} ${percent}`;
    const known = colours.get(key);
    if (known !== undefined) return known;
    parent.style.color = `color-mix(in srgb, var(--${name}) ${percent}%, transparent)`;
    const resolved = getComputedStyle(parent).color;
    parent.style.color = "";
    colours.set(key, resolved);
    return resolved;
  };
}
