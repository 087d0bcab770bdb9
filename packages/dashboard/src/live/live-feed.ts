/**
 * The live stream: one event a second, the last five minutes of which are kept for the charts. Before the first event, and after a pause,
 * come the seconds that the service has kept, so that a chart is never empty where figures exist.
 * It is open while somebody is signed in and the tab is seen (a browser has few connections for each host, and hidden tabs would hold
 * them), and opens again by itself after a loss. EventSource's own reconnecting gives up on an error status, which a service that is just
 * starting may answer.
 */

import { contact } from "../api/contact.js";
import { queryClient, sessionQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { Latency, LiveView, StatsView } from "../api/shapes.js";

type FeedState = "connecting" | "live" | "lost" | "unavailable";

/** One second for the charts. */
export interface FeedPoint {
  readonly atMs: number;
  readonly allowed: number;
  readonly refused: number;
  readonly shadowRefused: number;
  /** Null where nothing came: no request, no latency. */
  readonly latency: Latency | null;
}

export interface Feed {
  readonly state: FeedState;
  readonly latest: LiveView | undefined;
  /** Oldest first. A new array with each event. */
  readonly points: readonly FeedPoint[];
  readonly lastEventAtMs: number | undefined;
}

const KEPT = 300;
const RETRY_MS = 2_000;
/** Events come each second: a stream that is silent this long is as good as lost, even if the connection stands. */
const SILENCE_MS = 6_000;
const PROBE_MS = 5_000;

let feed: Feed = { state: "connecting", latest: undefined, points: [], lastEventAtMs: undefined };
const listeners = new Set<() => void>();
let source: EventSource | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let isOpen = false;
/** Whether the open stream has sent an event yet. */
let hasEvents = false;

function become(next: Partial<Feed>): void {
  feed = { ...feed, ...next };
  for (const listener of listeners) listener();
}

function connect(): void {
  source?.close();
  hasEvents = false;
  source = new EventSource("/admin/v1/stats/stream");
  source.addEventListener("live", (event: MessageEvent<string>) => {
    const view = readEvent(event.data);
    if (view === undefined) return;
    hasEvents = true;
    contact.heard();
    become({ state: "live", latest: view, points: joined([pointOf(view)]), lastEventAtMs: Date.now() });
    waitForNext();
  });
  source.addEventListener("error", () => void lose());
  waitForNext();
  void readKept();
}

/** The seconds from before the first event. Without them the chart begins now. */
async function readKept(): Promise<void> {
  try {
    const { total } = await request<StatsView>("/stats", { query: { window: "live" } });
    const kept = total.points.filter(({ coveredMs }) => coveredMs > 0);
    become({
      points: joined(
        kept.map(({ atMs, coveredMs, allowed, refused, shadowRefused, p50Ms, p95Ms, p99Ms }) => ({
          atMs,
          allowed: (allowed * 1_000) / coveredMs,
          refused: (refused * 1_000) / coveredMs,
          shadowRefused: (shadowRefused * 1_000) / coveredMs,
          latency: allowed + refused === 0 ? null : { p50Ms, p95Ms, p99Ms },
        })),
      ),
    });
  } catch {
    // The stream itself detects whether the service is away.
  }
}

function pointOf(view: LiveView): FeedPoint {
  const { atMs, allowedPerSecond: allowed, refusedPerSecond: refused, shadowRefusedPerSecond: shadowRefused } = view;
  return { atMs, allowed, refused, shadowRefused, latency: allowed + refused === 0 ? null : view.latency };
}

/** With what is there already, one for each second, in order; the newest are kept. */
function joined(points: readonly FeedPoint[]): readonly FeedPoint[] {
  const bySecond = new Map([...points, ...feed.points].map((point) => [point.atMs, point]));
  return [...bySecond.values()].sort((a, b) => a.atMs - b.atMs).slice(-KEPT);
}

function readEvent(text: string): LiveView | undefined {
  try {
    return JSON.parse(text) as LiveView;
  } catch {
    return undefined;
  }
}

function waitForNext(): void {
  clearTimeout(timer);
  timer = setTimeout(() => void lose(), SILENCE_MS);
}

/** A plain request finds the reason of the loss: an EventSource does not expose the status. */
async function lose(): Promise<void> {
  source?.close();
  clearTimeout(timer);
  const probe = new AbortController();
  const status = await fetch("/admin/v1/stats/stream", {
    headers: { "x-sluice-dashboard": "1" },
    signal: AbortSignal.any([probe.signal, AbortSignal.timeout(PROBE_MS)]),
  })
    .then((response) => response.status)
    .catch(() => 0)
    .finally(() => probe.abort());
  if (!isOpen) return;
  // The service was there all the time: a proxy in between may end what is open for long.
  if (status === 200 && hasEvents) return connect();
  // The session query distinguishes a service that is away from a session that is over.
  void queryClient.refetchQueries({ queryKey: sessionQuery.queryKey });
  become({ state: status === 404 ? "unavailable" : "lost" });
  timer = setTimeout(connect, RETRY_MS);
}

function follow(): void {
  const wanted = listeners.size > 0 && !document.hidden;
  if (wanted === isOpen) return;
  isOpen = wanted;
  clearTimeout(timer);
  source?.close();
  if (wanted) connect();
}

export const liveFeed = {
  current: () => feed,
  subscribe(listener: () => void): () => void {
    if (listeners.size === 0) document.addEventListener("visibilitychange", follow);
    listeners.add(listener);
    follow();
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) document.removeEventListener("visibilitychange", follow);
      follow();
    };
  },
};
