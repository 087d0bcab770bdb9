/** The live stream as hooks. */
import { useEffect, useSyncExternalStore } from "react";
import { type Feed, liveFeed } from "./live-feed.js";

export function useLiveFeed(): Feed {
  return useSyncExternalStore(liveFeed.subscribe, liveFeed.current);
}

/** Keeps the stream open on pages that do not show it, so that the chart has no gap on return. */
export function useOpenFeed(): void {
  useEffect(() => liveFeed.subscribe(() => undefined), []);
}
