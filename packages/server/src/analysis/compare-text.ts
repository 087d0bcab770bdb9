/** Renders a comparison as Markdown or as a single SVG. Pure. */
import type { Compared, ComparedRow } from "./compare.js";

type Column = readonly [head: string, cell: (row: ComparedRow) => string];

const round = (value: number): string => String(Number(value.toPrecision(3)));
const orDash = (value: number | undefined): string => (value === undefined ? "-" : round(value));

/** The columns for which the comparison has figures. */
export function columnsOf({ rows, limit }: Compared): Column[] {
  const isMeasured = rows.some(({ bytesPerKey }) => bytesPerKey !== undefined);
  const columns: Column[] = [
    ["algorithm", ({ algorithm }) => algorithm],
    ["refused", ({ refused, requests }) => `${refused} of ${requests}`],
    ["worst window", (row) => worstText(row, limit)],
    ["the paper: accuracy", ({ paperAccuracy = "-" }) => paperAccuracy],
  ];
  if (isMeasured) {
    columns.push(
      ["bytes a full key", ({ bytesPerKey }) => (bytesPerKey === undefined ? "-" : String(bytesPerKey))],
      ["the paper: bytes", ({ paperBytes }) => (paperBytes === undefined ? "-" : String(paperBytes))],
      ["us of Redis", ({ microseconds }) => orDash(microseconds)],
      ["commands", ({ commands }) => orDash(commands)],
    );
  }
  return columns;
}

function worstText({ worstWindow, overLimit = 0 }: ComparedRow, limit: number): string {
  if (worstWindow === undefined) return "-";
  return `${worstWindow} of ${limit}${overLimit > 0 ? ` (+${Math.round(100 * overLimit)} %)` : ""}`;
}

export function compareMarkdown(compared: Compared): string {
  const columns = columnsOf(compared);
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const version = compared.redisVersion === undefined ? "" : `, Redis ${compared.redisVersion}`;
  return [
    `Limit ${compared.limit} in ${compared.window}${version}`,
    "",
    line(columns.map(([head]) => head)),
    line(columns.map(() => "---")),
    ...compared.rows.map((row) => line(columns.map(([, cell]) => cell(row)))),
  ].join("\n");
}

const WIDTH = 720;
const ROW = 34;
const LEFT = 210;
const BAR = 300;
const HEAD = 40;
const OVER = "#c8372d";
const WITHIN = "#2f8f5b";
const BYTES = "#3565a8";

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly fill: string;
  /** Text after the value. */
  readonly beside: string;
  /** An additional mark on the bar's scale. */
  readonly mark?: number | undefined;
}

/** Draws each algorithm's worst window against the limit and, if a Redis was measured, the bytes of a full key against the paper's. */
export function compareSvg({ rows, limit, window }: Compared): string {
  const windows = rows.flatMap(({ algorithm, worstWindow, overLimit = 0, paperAccuracy }): Bar[] => {
    if (worstWindow === undefined) return [];
    const beside = paperAccuracy === undefined ? "" : ` (the paper: ${paperAccuracy} accuracy)`;
    return [{ name: algorithm, value: worstWindow, fill: overLimit > 0 ? OVER : WITHIN, beside, mark: limit }];
  });
  const bytes = rows.flatMap(({ algorithm, bytesPerKey, paperBytes }): Bar[] => {
    if (bytesPerKey === undefined) return [];
    const beside = paperBytes === undefined ? "" : ` (the paper: ${paperBytes})`;
    return [{ name: algorithm, value: bytesPerKey, fill: BYTES, beside, mark: paperBytes }];
  });
  const panels = [panel(`Most admitted in any ${window}, limit ${limit}`, windows, 0)];
  let height = 50 + windows.length * ROW;
  if (bytes.length > 0) {
    panels.push(panel("Bytes of a key at its limit on Redis; dashed: the paper's figure", bytes, height));
    height += 50 + bytes.length * ROW;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="13" fill="#1c2430"><rect width="${WIDTH}" height="${height}" fill="#fff"/>${panels.join("")}</svg>\n`;
}

function panel(title: string, bars: readonly Bar[], top: number): string {
  const scale = BAR / Math.max(1, ...bars.flatMap(({ value, mark = 0 }) => [value, mark]));
  const rows = bars.map(({ name, value, fill, beside, mark }, i) => {
    const y = top + HEAD + i * ROW;
    const end = LEFT + Math.max(value, mark ?? 0) * scale;
    const markX = (LEFT + (mark ?? 0) * scale).toFixed(1);
    const line = `<line x1="${markX}" y1="${y - 4}" x2="${markX}" y2="${y + 26}" stroke="#1c2430" stroke-dasharray="4 3"/>`;
    return `<text x="${LEFT - 10}" y="${y + 16}" text-anchor="end">${name}</text><rect x="${LEFT}" y="${y}" width="${(value * scale).toFixed(1)}" height="22" fill="${fill}"/>${mark === undefined ? "" : line}<text x="${(end + 8).toFixed(1)}" y="${y + 16}">${value}${beside}</text>`;
  });
  return `<text x="${LEFT}" y="${top + 22}">${title}</text>${rows.join("")}`;
}
