/**
 * This instance's heartbeat: once a second it publishes its state to the others under `instance:<id>`. An instance whose heartbeat has
 * expired is gone. The live view and alerts read the heartbeats of all instances.
 */
import { performance } from "node:perf_hooks";
import { InstanceText } from "./instance-text.js";
import { parseSharedText } from "./parse-shared-text.js";
import type { SharedState } from "./shared-state.js";

/** An instance's report about itself. */
export interface InstanceReport {
  readonly instance: string;
  readonly atMs: number;
  readonly store: "up" | "degraded";
  /** Event loop utilisation in the last second, 0 to 1. */
  readonly eventLoopUtilisation: number;
  readonly rulesVersion: number;
  /** Absent if the rules come from a file: each instance numbers such versions by itself. */
  readonly sharedVersion?: number;
  /** When the instance switched to its version. */
  readonly versionSinceMs: number;
  readonly rulesLoaded: boolean;
  readonly configurationError?: string;
}

type InstanceState = Omit<
  InstanceReport,
  "instance" | "atMs" | "eventLoopUtilisation" | "versionSinceMs" | "sharedVersion" | "configurationError"
> & { readonly sharedVersion?: number | undefined; readonly configurationError?: string | undefined };

interface HeartbeatOptions {
  readonly shared: SharedState;
  readonly instance: string;
  readonly state: () => InstanceState;
}

const PREFIX = "instance:";
const EVERY_MS = 1_000;
/** An instance without a heartbeat for this long is gone. */
const KEEP_MS = 10_000;

export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #text: InstanceText;
  #loopBefore = performance.eventLoopUtilization();
  #eventLoopUtilisation = 0;
  #version: { readonly version: number; readonly sinceMs: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #beat: Promise<void> | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#text = new InstanceText(options.shared, `${PREFIX}${options.instance}`);
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#measureEventLoop();
      // Skip beats while one is in flight to a slow Redis.
      this.#beat ??= this.beat(Date.now())
        // The recorder logs an unreachable Redis; the other instances notice the missing heartbeat.
        .catch(() => undefined)
        .finally(() => {
          this.#beat = undefined;
        });
    }, EVERY_MS);
    this.#timer.unref();
  }

  /** This instance's own report. */
  report(nowMs: number): InstanceReport {
    const { store, rulesVersion, sharedVersion, rulesLoaded, configurationError } = this.#options.state();
    if (this.#version?.version !== rulesVersion) this.#version = { version: rulesVersion, sinceMs: nowMs };
    return {
      instance: this.#options.instance,
      atMs: nowMs,
      store,
      eventLoopUtilisation: this.#eventLoopUtilisation,
      rulesVersion,
      ...(sharedVersion !== undefined && { sharedVersion }),
      versionSinceMs: this.#version.sinceMs,
      rulesLoaded,
      ...(configurationError !== undefined && { configurationError }),
    };
  }

  /** All instances with a live heartbeat. Rejects if the shared state is unreachable. */
  readAll(): Promise<InstanceReport[]> {
    return readHeartbeats(this.#options.shared);
  }

  async beat(nowMs: number): Promise<void> {
    await this.#text.write(JSON.stringify(this.report(nowMs)), KEEP_MS);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beat;
  }

  #measureEventLoop(): void {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#loopBefore);
    this.#loopBefore = now;
    this.#eventLoopUtilisation = Math.round(utilization * 1_000) / 1_000;
  }
}

async function readHeartbeats(shared: SharedState): Promise<InstanceReport[]> {
  const texts = await shared.readAll(PREFIX);
  return [...texts.values()].flatMap((text) => {
    const report = parseSharedText<InstanceReport>(text);
    if (report == null) return [];
    // Older releases report less: treat their rules as healthy.
    const { rulesLoaded = true, versionSinceMs = report.atMs } = report;
    return [{ ...report, rulesLoaded, versionSinceMs }];
  });
}
