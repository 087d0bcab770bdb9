/**
 * Evaluates every alert condition, once a round: the instances' reports, the store, and, when a minute has ended, every series and
 * the top keys. Out: findings, and which kinds were judged. A round does not judge what it cannot read.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type History, ruleOfSeries, seriesOfRule } from "../history/history.js";
import { causeInWords } from "../store-outage.js";
import type { AlertKind, StoreNode, TopKeysView } from "../views.js";
import type { Finding } from "./finding.js";
import { type KnownKeys, newHeavyKeys } from "./heavy-key.js";
import { parseJson } from "./parse-json.js";
import { type InstanceReport, propagationStuck } from "./propagation.js";
import { refusalShare } from "./refusal-share.js";
import { SeriesReader, type SeriesRound } from "./series-reader.js";
import { MINUTES, sumOf } from "./series-window.js";
import { storeDegraded, storeMemory } from "./store-health.js";
import { unusualRate } from "./unusual-rate.js";

/** This instance, as it sees itself. */
export interface InstanceState {
  /** Absent where versions mean nothing to the other instances. */
  readonly rulesVersion?: number | undefined;
  readonly rulesLoaded: boolean;
  readonly configurationError?: string | undefined;
  readonly storeDegradedSinceMs?: number | undefined;
  readonly storeError?: string | undefined;
}

export interface EvaluatorOptions {
  readonly history: History;
  /** Unique in the fleet. */
  readonly instance: string;
  readonly state: () => InstanceState;
  readonly nodes: () => Promise<readonly StoreNode[]>;
  readonly topKeys: () => Promise<Pick<TopKeysView, "maxError" | "keys">>;
}

const SERIES_A_SLICE = 20;
const REPORT = "alerts:instance:";
/** An instance that does not report for this long is gone, not stuck. */
const REPORT_KEEP_MS = 20_000;
const KNOWN_KEYS = "alerts:known-keys";
const KNOWN_KEEP_MS = 8 * 24 * 3_600_000;
/** How often what is known of keys is written though no new one came. */
const KNOWN_EVERY_MS = 3_600_000;

interface Looked {
  readonly findings: readonly Finding[];
  readonly judged: ReadonlySet<AlertKind>;
}

export class AlertEvaluator {
  readonly #options: EvaluatorOptions;
  readonly #history: History;
  readonly #series: SeriesReader;
  #versionSince: { version: number | undefined; atMs: number } | undefined;
  #reported: string | undefined;
  #evicted: ReadonlyMap<string, number> = new Map();
  #lastMinute: SeriesRound["lastMinute"] | undefined;
  #knownWrittenMs = 0;

  constructor(options: EvaluatorOptions) {
    this.#options = options;
    this.#history = options.history;
    this.#series = new SeriesReader(options.history);
  }

  /** Tells the others how this instance is. */
  async report(nowMs: number): Promise<void> {
    const name = REPORT + this.#options.instance;
    const now = JSON.stringify(this.#own(nowMs));
    const was = this.#reported;
    const written = await this.#history.swapText(name, { was, now, keepMs: REPORT_KEEP_MS });
    // It ended meanwhile, or is from before a restart: the next round writes over what is there.
    this.#reported = written ? now : await this.#history.readText(name);
  }

  async look(leadership: "leader" | "alone", nowMs: number): Promise<Looked> {
    const judged = new Set<AlertKind>(["store-degraded", "store-memory", "propagation-stuck"]);
    const alone = leadership === "alone";
    const reports = alone ? [this.#own(nowMs)] : await this.#reports(nowMs);
    const findings: (Finding | undefined)[] = [];
    if (alone) this.#lastMinute = undefined;
    else findings.push(...(await this.#lookAtSeries(nowMs, judged)));
    findings.push(
      this.#storeDegraded(reports, nowMs),
      ...(await this.#storeMemory()),
      ...propagationStuck(reports, nowMs),
    );
    return { findings: findings.filter((finding) => finding !== undefined), judged };
  }

  #own(nowMs: number): InstanceReport {
    const { rulesVersion, rulesLoaded, configurationError, storeDegradedSinceMs } = this.#options.state();
    if (this.#versionSince === undefined || this.#versionSince.version !== rulesVersion)
      this.#versionSince = { version: rulesVersion, atMs: nowMs };
    return {
      instance: this.#options.instance,
      atMs: nowMs,
      ...(rulesVersion !== undefined && { rulesVersion }),
      versionSinceMs: this.#versionSince.atMs,
      rulesLoaded,
      ...(configurationError !== undefined && { configurationError }),
      storeDegraded: storeDegradedSinceMs !== undefined,
    };
  }

  async #reports(nowMs: number): Promise<InstanceReport[]> {
    const texts = await this.#history.readTexts(REPORT);
    const others = [...texts.values()]
      .flatMap((text) => parseJson<InstanceReport>(text) ?? [])
      .filter(({ instance }) => instance !== this.#options.instance);
    return [this.#own(nowMs), ...others];
  }

  #storeDegraded(reports: readonly InstanceReport[], nowMs: number): Finding | undefined {
    const { storeDegradedSinceMs, storeError } = this.#options.state();
    const others = reports.filter((report) => report.storeDegraded && report.instance !== this.#options.instance);
    return storeDegraded({
      degradedSinceMs: storeDegradedSinceMs,
      lastError: storeError && causeInWords(storeError),
      degradedElsewhere: others.length,
      lastMinute: this.#lastMinute,
      nowMs,
    });
  }

  async #storeMemory(): Promise<readonly Finding[]> {
    const nodes = await this.#options.nodes().catch(() => []);
    const { storeDegradedSinceMs, storeError = "" } = this.#options.state();
    const oomSeen = storeDegradedSinceMs !== undefined && storeError.includes("OOM");
    const found = storeMemory({ nodes }, { evictedBefore: this.#evicted, oomSeen });
    this.#evicted = new Map(nodes.map(({ address, evictedKeys = 0 }) => [address, evictedKeys]));
    return found;
  }

  async #lookAtSeries(nowMs: number, judged: Set<AlertKind>): Promise<readonly (Finding | undefined)[]> {
    const round = await this.#series.next(nowMs);
    if (round === undefined) return [];
    this.#lastMinute = round.lastMinute;
    for (const kind of ["unusual-rate", "refusal-share"] as const) judged.add(kind);
    const findings: (Finding | undefined)[] = [];
    for (const [i, series] of round.series.entries()) {
      // A series takes some fifty microseconds: checks are answered between two slices.
      if (i % SERIES_A_SLICE === SERIES_A_SLICE - 1) await nextTurn();
      const window = round.windowOf(series);
      const rule = ruleOfSeries(series);
      findings.push(unusualRate(window, rule), refusalShare(window, rule));
    }
    return [...findings, ...(await this.#lookAtKeys(round, nowMs, judged))];
  }

  async #lookAtKeys(round: SeriesRound, nowMs: number, judged: Set<AlertKind>): Promise<readonly Finding[]> {
    const top = await this.#options.topKeys().catch(() => undefined);
    if (top === undefined) return [];
    judged.add("new-heavy-key");
    const was = await this.#history.readText(KNOWN_KEYS);
    const before: KnownKeys = new Map(parseJson<[string, never][]>(was) ?? []);
    const { findings, known } = newHeavyKeys({
      top,
      checksOf: (rule) => sumOf(round.windowOf(seriesOfRule(rule)).checks, MINUTES - 60, MINUTES),
      known: before,
      knownMinutes: round.knownMinutes,
      nowMs,
    });
    const news = [...known.keys()].some((digest) => !before.has(digest));
    if (news || (known.size > 0 && nowMs - this.#knownWrittenMs >= KNOWN_EVERY_MS)) {
      this.#knownWrittenMs = nowMs;
      await this.#history.swapText(KNOWN_KEYS, { was, now: JSON.stringify([...known]), keepMs: KNOWN_KEEP_MS });
    }
    return findings;
  }
}
