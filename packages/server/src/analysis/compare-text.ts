/** A comparison as Markdown or as one SVG. Pure. */
import type { Compared, ComparedRow } from "./compare.js";

type Column = readonly [head: string, cell: (row: ComparedRow) => string];

const round = (value: number): string => String(Number(value.toPrecision(3)));
const orDash = (value: number | undefined): string => (value === undefined ? "-" : round(value));

/** The columns that the comparison has figures for. */
export function columnsOf({ rows, limit }: Compared): Column[] {
  const isMeasured = rows.some(({ bytesPerKey }) => bytesPerKey !== undefined);
  const columns: Column[] = [
    ["algorithm", ({ algorithm }) => algorithm],
    ["refused", ({ refused, requests }) => `${refused} of ${requests}`],
    ["worst window", (row) => worstText(row, limit)],
  ];
  if (isMeasured) {
    columns.push(
      ["bytes a full key", ({ bytesPerKey }) => (bytesPerKey === undefined ? "-" : String(bytesPerKey))],
      ["the paper's bytes", ({ paperBytes }) => (paperBytes === undefined ? "-" : String(paperBytes))],
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
const BAR = 400;

/** The worst window of each algorithm beside the limit, as bars. */
export function compareSvg({ rows, limit, window }: Compared): string {
  const counted = rows.filter(({ worstWindow }) => worstWindow !== undefined);
  const most = Math.max(limit, ...counted.map(({ worstWindow }) => worstWindow!));
  const scale = BAR / most;
  const height = 50 + counted.length * ROW;
  const bars = counted.map(({ algorithm, worstWindow = 0, overLimit = 0 }, i) => {
    const y = 40 + i * ROW;
    return `<text x="${LEFT - 10}" y="${y + 16}" text-anchor="end">${algorithm}</text><rect x="${LEFT}" y="${y}" width="${(worstWindow * scale).toFixed(1)}" height="22" fill="${overLimit > 0 ? "#c8372d" : "#2f8f5b"}"/><text x="${(LEFT + worstWindow * scale + 8).toFixed(1)}" y="${y + 16}">${worstWindow}</text>`;
  });
  const limitX = (LEFT + limit * scale).toFixed(1);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="13" fill="#1c2430"><rect width="${WIDTH}" height="${height}" fill="#fff"/><text x="${LEFT}" y="22">Most admitted in any ${window}, limit ${limit}</text>${bars.join("")}<line x1="${limitX}" y1="30" x2="${limitX}" y2="${height - 10}" stroke="#1c2430" stroke-dasharray="4 3"/></svg>\n`;
}
