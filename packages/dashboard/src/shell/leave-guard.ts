/**
 * Asks for confirmation before the user leaves a page with unsaved changes. Guards one page at a time. Covers the dashboard's links and
 * buttons, but not the browser's back button.
 */
import { useEffect } from "react";
import type { AroundNavHandler } from "wouter";

type Ask = (go: () => void) => void;
let ask: Ask | undefined;

export const guardedNavigation: AroundNavHandler = (navigate, to, options) => {
  const go = (): void => navigate(to, options);
  const path = String(to).split(/[?#]/, 1)[0];
  if (ask === undefined || path === location.pathname) go();
  else ask(go);
};

/** Removes the guard, after the changes have been saved. */
export function releaseGuard(): void {
  ask = undefined;
}

/** `onLeave` receives the blocked navigation. The browser itself asks before the tab is closed or reloaded. */
export function useLeaveGuard(isDirty: boolean, onLeave: Ask): void {
  useEffect(() => {
    if (!isDirty) return;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    ask = onLeave;
    addEventListener("beforeunload", warn);
    return () => {
      if (ask === onLeave) ask = undefined;
      removeEventListener("beforeunload", warn);
    };
  }, [isDirty, onLeave]);
}
