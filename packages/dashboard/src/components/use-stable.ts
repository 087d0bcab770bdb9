/** A stable callback that always runs the latest render's code, so that memoised rows are not re-rendered. */
import { useCallback, useLayoutEffect, useRef } from "react";

export function useStable<In extends unknown[]>(act: (...given: In) => void): (...given: In) => void {
  const newest = useRef(act);
  useLayoutEffect(() => {
    newest.current = act;
  });
  return useCallback((...given: In) => newest.current(...given), []);
}
