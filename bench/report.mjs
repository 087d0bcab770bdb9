/** Tables for a terminal, and a chart of the ratios. */

const pad = (text, width) => String(text).padEnd(width);
const right = (text, width) => String(text).padStart(width);
const number = (value) =>
  value >= 1000 ? Math.round(value).toLocaleString("en-US") : value.toFixed(value < 10 ? 2 : 1);

export function printSection({ title, base, results }) {
  console.log(`\n${title}`);
  console.log(
    `  ${pad("", 40)}${right("ratio", 8)}${right("per s", 12)}${right("cpu ratio", 11)}${right("node us", 9)}${right("redis us", 10)}${right("p50 us", 9)}${right("p99 us", 10)}${right("calls", 8)}${right("spread", 8)}`,
  );
  const reference = results[base];
  const cpu = (figures) => figures.nodeUs + (figures.redisUs ?? 0);
  for (const [name, figures] of Object.entries(results)) {
    const cells = [
      right((figures.perSecond / reference.perSecond).toFixed(2), 8),
      right(number(figures.perSecond), 12),
      right(figures.nodeUs === undefined ? "" : (cpu(figures) / cpu(reference)).toFixed(2), 11),
      right(figures.nodeUs === undefined ? "" : number(figures.nodeUs), 9),
      right(figures.redisUs === undefined ? "" : number(figures.redisUs), 10),
      right(figures.p50Us === undefined ? "" : number(figures.p50Us), 9),
      right(figures.p99Us === undefined ? "" : number(figures.p99Us), 10),
      right(figures.callsPerDecision === undefined ? "" : figures.callsPerDecision.toFixed(3), 8),
      right(`${Math.round(figures.spread * 100)} %`, 8),
    ];
    console.log(`  ${pad(name, 40)}${cells.join("")}`);
  }
}

export function printBytes(rows) {
  console.log("\nBytes per key when full (MEMORY USAGE), beside the paper's figures");
  console.log(`  ${pad("", 30)}${right("limit", 8)}${right("bytes", 10)}${right("per entry", 11)}${right("paper", 8)}`);
  for (const { name, limit, bytes, perEntry, paper } of rows) {
    console.log(
      `  ${pad(name, 30)}${right(limit, 8)}${right(bytes, 10)}${right(perEntry.toFixed(2), 11)}${right(paper ?? "", 8)}`,
    );
  }
}

/** Bars and what was measured: [what, wanted, measured, met]. */
export function printBars(bars) {
  console.log("\nBars");
  for (const { what, wanted, measured, met } of bars) {
    console.log(
      `  ${met ? "met   " : "MISSED"} ${pad(what, 78)} ${right(wanted, 12)} ${right(measured.toFixed(3), 9)}`,
    );
  }
}

/** At 12 px, wide fonts included: a label must not be cut off. */
const PIXELS_A_LETTER = 7;

/** Decisions a second against the peer, one bar a section. */
export function chart(sections) {
  const rows = sections.flatMap(({ title, base, results }) =>
    Object.entries(results)
      .filter(([name]) => name !== base)
      .map(([name, figures]) => ({ label: `${title}: ${name}`, ratio: figures.perSecond / results[base].perSecond })),
  );
  const most = Math.max(...rows.map(({ ratio }) => ratio), 1);
  const left = 20 + PIXELS_A_LETTER * Math.max(...rows.map(({ label }) => label.length));
  const [width, height] = [left + 460, rows.length * 26 + 40];
  const escaped = (text) => text.replace(/[<&]/g, (character) => (character === "<" ? "&lt;" : "&amp;"));
  const bars = rows.map(({ label, ratio }, i) => {
    const y = 30 + i * 26;
    const length = Math.max(2, (ratio / most) * 380);
    return `<text x="${left}" y="${y + 14}" text-anchor="end">${escaped(label)}</text><rect x="${left + 10}" y="${y}" width="${length.toFixed(1)}" height="18" fill="#2b6cb0"/><text x="${(left + 18 + length).toFixed(1)}" y="${y + 14}">${ratio.toFixed(2)}</text>`;
  });
  const one = (left + 10 + 380 / most).toFixed(1);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12"><rect width="${width}" height="${height}" fill="#fff"/><text x="16" y="18" font-weight="600">Decisions a second, as a ratio to the peer (line: 1.0)</text><line x1="${one}" x2="${one}" y1="26" y2="${height - 8}" stroke="#999" stroke-dasharray="3 3"/>${bars.join("")}</svg>\n`;
}
