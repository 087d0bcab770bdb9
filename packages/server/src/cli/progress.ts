/**
 * Progress of work that takes longer than a second: one line on standard error, rewritten every second. In: how to word it. Out: a
 * function that ends it and clears the line. Only on a terminal: a file or a pipe never contains it.
 */

const EVERY_MS = 1_000;
const CLEAR_LINE = "\r\u001b[K";

type Terminal = Pick<NodeJS.WriteStream, "isTTY" | "write">;

/** `word`: gets the whole seconds since the start. */
export function showProgress(word: (seconds: number) => string, terminal: Terminal = process.stderr): () => void {
  if (!terminal.isTTY) return () => undefined;
  const startMs = performance.now();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startMs) / 1_000);
    terminal.write(`${CLEAR_LINE}${word(seconds)}`);
  }, EVERY_MS);
  return () => {
    clearInterval(timer);
    terminal.write(CLEAR_LINE);
  };
}
