/** The live stream as a hook. */
import { useSyncExternalStore } from "react";
import { type Feed, liveFeed } from "./live-feed.js";

export function useLiveFeed(): Feed {
  return useSyncExternalStore(liveFeed.subscribe, liveFeed.current);
}
