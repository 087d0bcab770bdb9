/**
 * The view by region (`GET /admin/v1/regions`). Every two seconds each instance writes a report into the shared state of the global store,
 * and into its own region's. An expired report means that the instance is gone; a region with no report but a recent "seen" entry is
 * silent. TTLs do this, so no two clocks are compared.
 *
 * Read from the global store; if that does not answer, from the region's store, which knows only this region; otherwise from this instance.
 */
import type { Limiter } from "sluice";
import { InstanceText } from "../../instance/instance-text.js";
import { parseSharedText } from "../../instance/parse-shared-text.js";
import type { SharedState } from "../../instance/shared-state.js";
import { singleFlight } from "../single-flight.js";
import type { Traffic } from "../traffic.js";
import type { RegionsView, RegionView } from "../views/regions.js";
import { type RegionCounts, type RegionReport, readReport, regionViews, reportOf } from "./region-report.js";

export interface RegionWatch {
  read(): Promise<RegionsView>;
  close(): Promise<void>;
}

interface RegionWatchOptions {
  readonly limiter: Pick<Limiter, "regionStats">;
  readonly traffic: Pick<Traffic, "decisions">;
  readonly instance: string;
  /** Shared by this region's instances. */
  readonly shared: SharedState;
  /** In the global store. */
  readonly home: SharedState;
}

const REPORTS = "region:";
const SEEN = "region-seen:";
const EVERY_MS = 2_000;
/** TTL, like a heartbeat's: an instance without a report for this long is gone. */
const KEEP_MS = 10_000;
const SEEN_EVERY = 5;
const SEEN_KEEP_MS = 24 * 3_600_000;
const READ_FOR_MS = 1_000;

export function startRegionWatch(options: RegionWatchOptions): RegionWatch {
  const watch = new Watch(options);
  let writing: Promise<void> | undefined;
  const timer = setInterval(() => {
    // Skip reports while one is in flight to a slow global store.
    writing ??= watch.write(Date.now()).finally(() => {
      writing = undefined;
    });
  }, EVERY_MS);
  timer.unref();
  return {
    read: singleFlight(READ_FOR_MS, () => watch.read()),
    async close() {
      clearInterval(timer);
      await writing;
    },
  };
}

class Watch {
  readonly #options: RegionWatchOptions;
  readonly #region: string;
  readonly #hereText: InstanceText;
  readonly #homeText: InstanceText;
  readonly #seenText: InstanceText;
  #before: { atMs: number; counts: RegionCounts };
  #report: RegionReport;
  #cutOffSinceMs: number | undefined;
  #writes = 0;

  constructor(options: RegionWatchOptions) {
    this.#options = options;
    const atMs = Date.now();
    this.#before = { atMs, counts: this.#counts() };
    this.#region = this.#before.counts.stats.region;
    this.#report = this.#next(atMs);
    const name = `${REPORTS}${this.#region}:${options.instance}`;
    this.#hereText = new InstanceText(options.shared, name);
    this.#homeText = new InstanceText(options.home, name);
    this.#seenText = new InstanceText(options.home, `${SEEN}${this.#region}`);
  }

  async write(nowMs: number): Promise<void> {
    this.#report = this.#next(nowMs);
    const text = JSON.stringify(this.#report);
    const isSeen = this.#writes++ % SEEN_EVERY === 0;
    const here = this.#hereText.write(text, KEEP_MS).catch(() => undefined);
    try {
      await this.#homeText.write(text, KEEP_MS);
      if (isSeen) await this.#seenText.write(JSON.stringify({ region: this.#region, atMs: nowMs }), SEEN_KEEP_MS);
      this.#cutOffSinceMs = undefined;
    } catch {
      this.#cutOffSinceMs ??= nowMs;
    }
    await here;
  }

  async read(): Promise<RegionsView> {
    const { home, shared } = this.#options;
    const about = { atMs: Date.now(), own: this.#region };
    try {
      return { ...about, scope: "all", regions: await readRegions(home) };
    } catch {
      this.#cutOffSinceMs ??= about.atMs;
    }
    try {
      return { ...about, scope: "region", regions: this.#withOwn(await readRegions(shared)) };
    } catch {
      return { ...about, scope: "instance", regions: this.#withOwn([]) };
    }
  }

  /** Adds this instance's own report if the region's store has none either. */
  #withOwn(regions: readonly RegionView[]): readonly RegionView[] {
    if (regions.some(({ region }) => region === this.#region)) return regions;
    const sinceMs = this.#cutOffSinceMs;
    const own = { ...this.#report, ...(sinceMs !== undefined && { cutOffSinceMs: sinceMs }) };
    return [...regions, ...regionViews([own], new Map())];
  }

  #next(atMs: number): RegionReport {
    const now = { atMs, counts: this.#counts() };
    const about = { instance: this.#options.instance, cutOffSinceMs: this.#cutOffSinceMs };
    const report = reportOf(about, { before: this.#before, now });
    this.#before = now;
    return report;
  }

  #counts(): RegionCounts {
    const { limiter, traffic } = this.#options;
    const { allowed, refused } = traffic.decisions.requests;
    return { allowed, refused, stats: limiter.regionStats()! };
  }
}

async function readRegions(shared: SharedState): Promise<RegionView[]> {
  const reports = await shared.readAll(REPORTS);
  const seen = await shared.readAll(SEEN);
  const seenMs = new Map<string, number>();
  for (const text of seen.values()) {
    const { region, atMs } = parseSharedText<{ region?: unknown; atMs?: unknown }>(text) ?? {};
    if (typeof region === "string" && typeof atMs === "number") seenMs.set(region, atMs);
  }
  return regionViews(
    [...reports.values()].flatMap((text) => readReport(parseSharedText(text)) ?? []),
    seenMs,
  );
}
