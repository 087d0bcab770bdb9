/** The shown time of the address, and changing it. Each change is an entry of the browser's history: Back undoes a zoom. */
import { useMemo } from "react";
import { useLocation, useSearch } from "wouter";
import { type Compare, compareIn, type Preset, type ShownTime, timeIn, timeName, withTime } from "./time-address.js";

/** Navigation that sets the frame's parameters itself (`shell/navigate.ts`). */
export const SETS_FRAME = { setsFrame: true } as const;

interface ShownTimes {
  readonly time: ShownTime;
  readonly compare: Compare | undefined;
  set(time: ShownTime): void;
  setParameter(name: "compare" | "zone", value: string | undefined): void;
}

export function useTime(fallback: Preset = "1h"): ShownTimes {
  const search = useSearch();
  const [location, navigate] = useLocation();
  const found = timeIn(search, fallback);
  const name = timeName(found);
  // One object for one time: it stands in the keys of queries and in effects.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the name stands for the time.
  const time = useMemo(() => found, [name]);
  const go = (next: string): void => navigate(next === "" ? location : `${location}?${next}`, { state: SETS_FRAME });
  return {
    time,
    compare: compareIn(search),
    set: (next) => go(withTime(search, next)),
    setParameter(parameter, value) {
      const params = new URLSearchParams(search);
      if (value === undefined) params.delete(parameter);
      else params.set(parameter, value);
      go(params.toString());
    },
  };
}
