/** Watches a page's frames for a test: which rows were added at once, and which frames took long, with what they spent their time on. */
import type { Page } from "playwright-core";
import { expect } from "vitest";

interface Seen {
  /** Rows that were added at once, for each time. */
  readonly added: readonly number[];
  readonly frames: readonly { readonly ms: number; readonly renderMs: number; readonly scripts: readonly string[] }[];
}

export interface FrameWatch {
  /** With the mouse, where the element is. */
  click(selector: string): Promise<void>;
  /** Waits until an expression is true in the page. It should cost the page little. */
  until(expression: string): Promise<void>;
  /** What was seen since the last look; it is printed. */
  look(what: string): Promise<Seen>;
}

const start = `
  window.seen = { added: [], frames: [] };
  new MutationObserver((changes) => {
    const nodes = changes.flatMap((change) => [...change.addedNodes]).filter((node) => node.nodeType === 1);
    const rows = nodes.flatMap((node) => (node.matches("tbody tr") ? [node] : [...node.querySelectorAll("tbody tr")]));
    if (rows.length > 0) seen.added.push(new Set(rows).size);
  }).observe(document.body, { childList: true, subtree: true });
  new PerformanceObserver((list) => {
    for (const frame of list.getEntries()) {
      seen.frames.push({
        ms: frame.duration,
        renderMs: frame.renderStart === 0 ? 0 : frame.startTime + frame.duration - frame.renderStart,
        scripts: frame.scripts.map((one) => one.invoker + " " + Math.round(one.duration)),
      });
    }
  }).observe({ type: "long-animation-frame" });
`;

/** Two frames on: the entry of a long frame comes after it. */
const take = `new Promise((resolve) => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
    const was = seen;
    seen = { added: [], frames: [] };
    resolve(was);
  }, 60)));
})`;

export async function watchFrames(page: Page): Promise<FrameWatch> {
  await page.evaluate(start);
  return {
    async click(selector) {
      const target = page.locator(selector).first();
      await target.waitFor();
      await target.scrollIntoViewIfNeeded();
      const box = (await target.boundingBox())!;
      await page.mouse.click(box.x + Math.min(box.width / 2, 40), box.y + box.height / 2);
    },
    async until(expression) {
      // Not waitForFunction: it evaluates a text in the page, which the content security policy forbids.
      await expect.poll(() => page.evaluate(expression), { timeout: 60_000, interval: 50 }).toBe(true);
    },
    async look(what) {
      const seen = (await page.evaluate(take)) as Seen;
      const longest = [...seen.frames].sort((a, b) => b.ms - a.ms)[0];
      const over = seen.frames.filter(({ ms }) => ms > 100).map(({ ms }) => Math.round(ms));
      const parts = longest && ` (rendering ${Math.round(longest.renderMs)}; ${longest.scripts.join(", ")})`;
      console.log(
        `${what}: rows by the frame ${seen.added.join(" ") || "none"}; the longest frame ${longest === undefined ? "under 50" : Math.round(longest.ms)} ms${parts ?? ""}; over 100 ms: ${over.join(" ") || "none"}`,
      );
      return seen;
    },
  };
}
