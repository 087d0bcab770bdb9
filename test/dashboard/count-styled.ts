/** How many elements the browser computed the style of while something was done: what a dialog costs, whatever the machine does meanwhile. */
import type { Browser, Page } from "playwright-core";

interface TraceEvent {
  readonly name: string;
  readonly args?: { readonly elementCount?: number };
}

export async function countStyled(browser: Browser, page: Page, act: () => Promise<void>): Promise<number> {
  await browser.startTracing(page, { categories: ["devtools.timeline"] });
  await act();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const counts = traceEvents
    .filter(({ name }) => name === "UpdateLayoutTree")
    .map(({ args }) => args?.elementCount ?? 0);
  // None at all would be a trace of nothing.
  if (counts.length === 0) throw new Error("the trace holds no computation of style");
  return counts.reduce((sum, one) => sum + one, 0);
}
