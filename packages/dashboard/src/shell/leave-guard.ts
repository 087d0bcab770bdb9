/**
 * Confirms before the user leaves a page with unsaved changes. One page at a time is guarded. Links and buttons of the dashboard pass
 * here; the browser's back button does not.
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

/** Ends the guard: the changes are saved. */
export function releaseGuard(): void {
  ask = undefined;
}

/** `onLeave` gets the navigation that was held back. The browser itself confirms before the tab is closed or reloaded. */
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
