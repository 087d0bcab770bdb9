/** Tells on stderr which section of the benchmarks runs, and how many are left: the figures alone go to stdout. */
export function progress(titles, write = (line) => process.stderr.write(line)) {
  const startMs = Date.now();
  return (title) => {
    const at = titles.indexOf(title);
    if (at === -1) throw new Error(`progress: expected one of ${titles.join(", ")}, got ${title}`);
    const seconds = Math.round((Date.now() - startMs) / 1_000);
    write(`section ${at + 1} of ${titles.length}: ${title} (${titles.length - at - 1} left, ${seconds} s so far)\n`);
  };
}
