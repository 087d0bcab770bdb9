/** Exports a chart: values as CSV, picture as PNG with title and legend. Done in the browser; nothing is sent. */

interface CsvLine {
  readonly label: string;
  readonly values: readonly (number | null)[];
}

/** RFC 4180, times in UTC. Unknown values are empty cells. */
export function csvOf(timesMs: readonly number[], lines: readonly CsvLine[]): string {
  const rows = timesMs.map((ms, i) => [new Date(ms).toISOString(), ...lines.map(({ values }) => values[i] ?? "")]);
  return [["time", ...lines.map(({ label }) => quoted(label))], ...rows].map((row) => `${row.join(",")}\r\n`).join("");
}

function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const EDGE = 16;
const HEAD = 56;

interface Picture {
  readonly canvas: HTMLCanvasElement;
  readonly title: string;
  readonly legend: readonly { readonly label: string; readonly colour: string }[];
  readonly ink: string;
  readonly ground: string;
}

/** The chart's canvas with a title and legend, on the theme's background, at the screen's resolution. */
export function pictureOf({ canvas, title, legend, ink, ground }: Picture): HTMLCanvasElement {
  const scale = window.devicePixelRatio || 1;
  const picture = document.createElement("canvas");
  picture.width = canvas.width + 2 * EDGE * scale;
  picture.height = canvas.height + (HEAD + EDGE) * scale;
  const pen = picture.getContext("2d")!;
  pen.fillStyle = ground;
  pen.fillRect(0, 0, picture.width, picture.height);
  pen.scale(scale, scale);
  pen.fillStyle = ink;
  pen.font = "600 15px system-ui, sans-serif";
  pen.fillText(title, EDGE, 22);
  pen.font = "12px system-ui, sans-serif";
  let x = EDGE;
  for (const { label, colour } of legend) {
    pen.fillStyle = colour;
    pen.fillRect(x, 34, 12, 4);
    pen.fillStyle = ink;
    pen.fillText(label, x + 18, 40);
    x += 18 + pen.measureText(label).width + 16;
  }
  pen.drawImage(canvas, EDGE, HEAD, canvas.width / scale, canvas.height / scale);
  return picture;
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** `Decisions a second` -> `sluice-decisions-a-second.csv`. */
export function fileName(label: string, ending: string): string {
  const words = label.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return `sluice-${words.replace(/^-|-$/g, "")}.${ending}`;
}
