/**
 * Incremental rendering of many rows: new rows appear a screenful at once, then more with each frame, so that no frame renders them all.
 * Rows that stay, by name, cost nothing; a list that shrinks does so at once.
 */
import { useEffect, useRef, useState } from "react";

/** More than fits on a screen. */
const FIRST_ROWS = 20;
const ROWS_A_FRAME = 12;

export function useGrowing(names: readonly string[]): number {
  // An object, so that setting the same number again re-renders too.
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

/** As many as contain at most a screenful of new ones. */
function upTo(names: readonly string[], drawn: ReadonlySet<string>): number {
  let fresh = 0;
  const end = names.findIndex((name) => !drawn.has(name) && ++fresh > FIRST_ROWS);
  return end < 0 ? names.length : end;
}
