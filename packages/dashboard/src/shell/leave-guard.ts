/** Asks before one leaves a page with unsaved changes. One page at a time guards; links and buttons of the dashboard pass here, the way back does not. */
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

/** From now on nothing is asked: what was to be saved is saved. */
export function releaseGuard(): void {
  ask = undefined;
}

/** `onLeave` gets the step that was held up. The browser itself asks before the tab is closed or loaded anew. */
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
