/**
 * Spreads heavy work over frames, one task per frame, so that a page with four charts opens without a long frame.
 * In: a task. Out: a function that cancels it while it is queued. Keeps order.
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
