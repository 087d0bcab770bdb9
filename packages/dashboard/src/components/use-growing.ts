/**
 * How many of many rows are drawn: as long as there are rows that were not there before, a screenful of them at once and then some more with
 * each frame, so that no frame draws them all. Rows that stay, by their names, cost nothing; a list that shrinks is short at once.
 */
import { useEffect, useRef, useState } from "react";

/** More than a screen shows. */
const FIRST_ROWS = 20;
const ROWS_A_FRAME = 12;

export function useGrowing(names: readonly string[]): number {
  // An object: the same number once more is a new frame too.
  const [grown, setGrown] = useState({ most: FIRST_ROWS });
  const drawn = useRef<ReadonlySet<string>>(new Set());
  const shown = upTo(names.slice(0, grown.most), drawn.current);
  useEffect(() => {
    drawn.current = new Set(names.slice(0, shown));
    if (shown >= names.length) return;
    const frame = requestAnimationFrame(() => setGrown({ most: shown + ROWS_A_FRAME }));
    return () => cancelAnimationFrame(frame);
  }, [names, shown]);
  return shown;
}

/** So many that no more than a screenful of them are new. */
function upTo(names: readonly string[], drawn: ReadonlySet<string>): number {
  let fresh = 0;
  const end = names.findIndex((name) => !drawn.has(name) && ++fresh > FIRST_ROWS);
  return end < 0 ? names.length : end;
}
