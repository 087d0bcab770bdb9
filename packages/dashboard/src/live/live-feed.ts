/**
 * The live stream: one event a second, the last five minutes of which are kept for the charts.
 * It connects while somebody looks, and again by itself after a loss, every two seconds. EventSource's own reconnecting gives up on an
 * error status, which a service that is just starting may answer.
 */
import type { LiveView } from "../api/shapes.js";
import { contact } from "./contact.js";

export type FeedState = "connecting" | "live" | "lost" | "unavailable";

export interface Feed {
  readonly state: FeedState;
  /** Oldest first. A new array with each event. */
  readonly points: readonly LiveView[];
  readonly lastEventAtMs: number | undefined;
}

const KEPT = 300;
const RETRY_MS = 2_000;
/** Events come each second: a stream that is silent this long is as good as lost, even if the connection stands. */
const SILENCE_MS = 6_000;

let feed: Feed = { state: "connecting", points: [], lastEventAtMs: undefined };
const listeners = new Set<() => void>();
let source: EventSource | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

function become(next: Partial<Feed>): void {
  feed = { ...feed, ...next };
  for (const listener of listeners) listener();
}

function connect(): void {
  // Whoever left and came back while a loss was being looked into must not get two streams.
  source?.close();
  source = new EventSource("/admin/v1/stats/stream");
  source.addEventListener("live", (event: MessageEvent<string>) => {
    const view = readEvent(event.data);
    if (view === undefined) return;
    contact.heard();
    const isNewer = view.atMs > (feed.points.at(-1)?.atMs ?? 0);
    const points = isNewer ? [...feed.points.slice(1 - KEPT), view] : feed.points;
    become({ state: "live", points, lastEventAtMs: Date.now() });
    waitFor(SILENCE_MS);
  });
  source.addEventListener("error", () => void lose());
  waitFor(SILENCE_MS);
}

function readEvent(text: string): LiveView | undefined {
  try {
    return JSON.parse(text) as LiveView;
  } catch {
    return undefined;
  }
}

function waitFor(ms: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => void lose(), ms);
}

/** Why it was lost is asked of an ordinary call: an EventSource does not tell. */
async function lose(): Promise<void> {
  source?.close();
  clearTimeout(timer);
  const stopped = new AbortController();
  const status = await fetch("/admin/v1/stats/stream", {
    headers: { "x-sluice-dashboard": "1" },
    signal: AbortSignal.any([stopped.signal, AbortSignal.timeout(5_000)]),
  })
    .then((response) => response.status)
    .catch(() => 0)
    .finally(() => stopped.abort());
  if (listeners.size === 0) return;
  if (status === 0 || status >= 500) contact.failed();
  if (status === 401) return contact.signedOut();
  become({ state: status === 404 ? "unavailable" : "lost" });
  timer = setTimeout(connect, RETRY_MS);
}

export const liveFeed = {
  current: () => feed,
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    if (listeners.size === 1) connect();
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      clearTimeout(timer);
      source?.close();
    };
  },
};
