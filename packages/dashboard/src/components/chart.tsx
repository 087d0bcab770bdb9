/**
 * A time chart on a canvas (uPlot), in the theme's colours, with a text description for screen readers.
 * In: times in milliseconds and one list of values per line. Out: the chart; values under the pointer appear in its legend.
 */
import { useState } from "react";
import { useTheme } from "../styles/theme.js";
import { csvOf, fileName, pictureOf, save } from "./chart-files.js";
import { Legend } from "./figures.js";
import { clockTime, dayTime, known } from "./format.js";
import { type Marker, Markers } from "./markers.js";
import { colourReader, type Line, usePlot } from "./use-plot.js";

export type { Line } from "./use-plot.js";

interface ChartProps {
  readonly label: string;
  readonly timesMs: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** Format of axis labels, which have little room. Default: `format`. */
  readonly axisFormat?: (value: number) => string;
  readonly height?: number;
  readonly markers?: readonly Marker[];
  /** Called with the dragged range; absent: dragging does nothing. */
  readonly onZoom?: ((fromMs: number, toMs: number) => void) | undefined;
}

export function Chart(props: ChartProps) {
  const { label, timesMs, lines, format, axisFormat = format, height = 220, markers = [], onZoom } = props;
  const [at, setAt] = useState<number | null>(null);
  const theme = useTheme();
  const { frame, plot } = usePlot({ timesMs, lines, format: axisFormat, height, onMove: setAt, onZoom });
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
    if (plot.current === undefined) return;
    const colour = colourReader(frame.current!, theme);
    const legend = lines.map(({ mark, label: name }) => ({ label: name, colour: colour(mark) }));
    const { canvas } = plot.current.ctx;
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
        <div
          className="chart"
          style={{ minHeight: height }}
          ref={frame}
          role="img"
          aria-label={`${label}; at ${time}: ${described}`}
        />
        {markers.length > 0 && timesMs.length > 1 && <Markers markers={markers} timesMs={timesMs} />}
      </div>
    </figure>
  );
}

/** The latest index at which any line has a value: the last step may still be unknown. */
function lastKnown(lines: readonly Line[], length: number): number {
  for (let i = length - 1; i >= 0; i--) if (lines.some(({ values }) => values[i] != null)) return i;
  return length - 1;
}
