/** A callback that stays the same function, and does what the newest render says: rows that are drawn once need not be drawn again. */
import { useCallback, useLayoutEffect, useRef } from "react";

export function useStable<In extends unknown[]>(act: (...given: In) => void): (...given: In) => void {
  const newest = useRef(act);
  useLayoutEffect(() => {
    newest.current = act;
  });
  return useCallback((...given: In) => newest.current(...given), []);
}
