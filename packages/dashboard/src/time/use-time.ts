/** Reads and changes the selected time in the URL. Each change adds a history entry: Back undoes a zoom. */
import { useMemo } from "react";
import { useLocation } from "wouter";
import { type Compare, compareIn, type Preset, type ShownTime, timeIn, timeName, withTime } from "./time-address.js";
import { useSearch } from "./use-search.js";

/** Navigation that sets the frame parameters itself (`shell/navigate.ts`). */
export const SETS_FRAME = { setsFrame: true } as const;

type FrameParameters = Readonly<Partial<Record<"compare" | "zone", string | undefined>>>;

interface ShownTimes {
  readonly time: ShownTime;
  readonly compare: Compare | undefined;
  set(time: ShownTime, parameters?: FrameParameters): void;
  setParameter(name: "compare" | "zone", value: string | undefined): void;
}

export function useTime(fallback: Preset = "1h"): ShownTimes {
  const search = useSearch();
  const [location, navigate] = useLocation();
  const found = timeIn(search, fallback);
  const name = timeName(found);
  // A stable object per time: it is part of query keys and effect dependencies.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the name stands for the time.
  const time = useMemo(() => found, [name]);
  const go = (next: string): void => navigate(next === "" ? location : `${location}?${next}`, { state: SETS_FRAME });
  return {
    time,
    compare: compareIn(search),
    set: (next, parameters = {}) => go(withParameters(withTime(search, next), parameters)),
    setParameter: (parameter, value) => go(withParameters(search, { [parameter]: value })),
  };
}

function withParameters(search: string, parameters: FrameParameters): string {
  const params = new URLSearchParams(search);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) params.delete(name);
    else params.set(name, value);
  }
  return params.toString();
}
