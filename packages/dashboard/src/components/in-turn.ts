/**
 * Heavy work of several parts of a page, one part a frame: a page with four charts opens without one long frame.
 * In: what to do. Out: a function that takes it back while it waits. Order is kept.
 */
const waiting: (() => void)[] = [];

export function inTurn(act: () => void): () => void {
  waiting.push(act);
  if (waiting.length === 1) requestAnimationFrame(next);
  return () => {
    const at = waiting.indexOf(act);
    if (at >= 0) waiting.splice(at, 1);
  };
}

function next(): void {
  const act = waiting.shift();
  if (waiting.length > 0) requestAnimationFrame(next);
  act?.();
}
