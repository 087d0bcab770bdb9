/** Navigation within the console: keeps the selected time across pages, and asks before discarding unsaved changes. */
import type { AroundNavHandler } from "wouter";
import { carried } from "../time/time-address.js";
import { SETS_FRAME } from "../time/use-time.js";
import { guardedNavigation } from "./leave-guard.js";

export const navigation: AroundNavHandler = (navigate, to, options) => {
  const setsFrame = options?.state === SETS_FRAME;
  guardedNavigation(navigate, setsFrame ? to : carried(String(to), location.search), options);
};

/** The URL that a link shows, and opens in another tab. */
export function linkAddress(href: string): string {
  return href.startsWith("/") ? carried(href, location.search) : href;
}
