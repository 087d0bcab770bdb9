/**
 * The heartbeat of this instance: once a second it writes what the others should know of it, under `instance:<id>`. An instance whose
 * heartbeat has expired is gone. Live view and alerts read the heartbeats of all instances.
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
  /** Share of the last second in which the event loop worked. */
  readonly eventLoopUtilisation: number;
  readonly rulesVersion: number;
  /** Absent where the rules come from a file: each instance counts such versions for itself. */
  readonly sharedVersion?: number;
  /** When the instance got its version. */
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
/** An instance that was not heard of for this long is gone. */
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
      // While a beat is on its way to a slow Redis, the next ones are left out.
      this.#beat ??= this.beat(Date.now())
        // The recorder logs a Redis that cannot be reached; the others see that this heartbeat is missing.
        .catch(() => undefined)
        .finally(() => {
          this.#beat = undefined;
        });
    }, EVERY_MS);
    this.#timer.unref();
  }

  /** Of this instance. */
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

  /** Of every instance that was heard of lately. Rejects where the shared state cannot be reached. */
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
    // Earlier versions report less: nothing is known to be wrong with their rules.
    const { rulesLoaded = true, versionSinceMs = report.atMs } = report;
    return [{ ...report, rulesLoaded, versionSinceMs }];
  });
}
