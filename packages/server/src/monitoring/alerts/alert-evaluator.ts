/**
 * Evaluates every alert condition once per round: the instances' reports, the store, and, once a minute, every series and the top keys.
 * Out: findings, and the kinds that were evaluated. A round leaves out kinds whose data it cannot read.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AlertPolicy, DetectorTuning } from "../../configuration/alert-policy.js";
import { causeInWords } from "../../instance/failure-words.js";
import type { Heartbeat, InstanceReport } from "../../instance/heartbeat.js";
import { parseSharedText } from "../../instance/parse-shared-text.js";
import type { SharedState } from "../../instance/shared-state.js";
import type { StoreHealth } from "../../instance/store-health.js";
import { type History, ruleOfSeries, seriesOfRule, TOTAL_SERIES } from "../history/history.js";
import type { AlertKind } from "../views/alerts.js";
import type { TopKeysView } from "../views/keys.js";
import type { StoreNode } from "../views/store.js";
import type { Finding } from "./finding.js";
import { type KnownKeys, newHeavyKeys } from "./heavy-key.js";
import { ownThreshold } from "./own-threshold.js";
import { type TagsOf, tuningFor } from "./policy-match.js";
import { propagationStuck } from "./propagation.js";
import { refusalShare } from "./refusal-share.js";
import { SeriesReader, type SeriesRound } from "./series-reader.js";
import { MINUTES, sumOf } from "./series-window.js";
import { storeDegraded, storeMemory } from "./store-findings.js";
import { unusualRate } from "./unusual-rate.js";

export interface EvaluatorOptions {
  readonly history: History;
  readonly shared: SharedState;
  /** Unique in the fleet. */
  readonly instance: string;
  readonly heartbeat: Pick<Heartbeat, "report" | "readAll">;
  /** This instance's view of the store. */
  readonly storeHealth: Pick<StoreHealth, "sinceMs" | "failingSinceMs" | "error">;
  readonly nodes: () => Promise<readonly StoreNode[]>;
  readonly topKeys: () => Promise<Pick<TopKeysView, "maxError" | "keys">>;
  /** Rules in force that have a tag. Absent: no rule has one. */
  readonly tagged?: (tag: string) => readonly string[];
  readonly tagsOf?: TagsOf;
}

const SERIES_A_SLICE = 20;
const KNOWN_KEYS = "alerts:known-keys";
const KNOWN_KEEP_MS = 8 * 24 * 3_600_000;
/** How often the known keys are written even without a new one. */
const KNOWN_EVERY_MS = 3_600_000;

interface Looked {
  readonly findings: readonly Finding[];
  readonly judged: ReadonlySet<AlertKind>;
}

export class AlertEvaluator {
  readonly #options: EvaluatorOptions;
  readonly #shared: SharedState;
  readonly #series: SeriesReader;
  #evicted: ReadonlyMap<string, number> = new Map();
  #lastMinute: SeriesRound["lastMinute"] | undefined;
  #knownWrittenMs = 0;

  constructor(options: EvaluatorOptions) {
    this.#options = options;
    this.#shared = options.shared;
    this.#series = new SeriesReader(options);
  }

  async look(leadership: "leader" | "alone", nowMs: number, policy: AlertPolicy): Promise<Looked> {
    const judged = new Set<AlertKind>(["store-degraded", "store-memory", "propagation-stuck"]);
    const alone = leadership === "alone";
    const own = this.#options.heartbeat.report(nowMs);
    const reports = alone ? [own] : [own, ...(await this.#others())];
    const findings: (Finding | undefined)[] = [];
    if (alone) this.#lastMinute = undefined;
    else findings.push(...(await this.#lookAtSeries(nowMs, judged, policy)));
    findings.push(
      this.#storeDegraded(reports, nowMs),
      ...(await this.#storeMemory()),
      ...propagationStuck(reports, nowMs),
    );
    return { findings: findings.flatMap((finding) => this.#tuned(finding, policy) ?? []), judged };
  }

  #tuningOf(policy: AlertPolicy, kind: AlertKind, rule: string | undefined): DetectorTuning | undefined {
    return tuningFor(policy, { kind, rule }, this.#options.tagsOf ?? (() => []));
  }

  /** Drops findings of disabled detectors, and applies a configured severity. */
  #tuned(finding: Finding | undefined, policy: AlertPolicy): Finding | undefined {
    if (finding === undefined || finding.kind === "threshold") return finding;
    const { mode, severity } = this.#tuningOf(policy, finding.kind, finding.rule) ?? {};
    if (mode === "off") return undefined;
    return severity === undefined ? finding : { ...finding, severity };
  }

  async #others(): Promise<InstanceReport[]> {
    const reports = await this.#options.heartbeat.readAll();
    return reports.filter(({ instance }) => instance !== this.#options.instance);
  }

  #storeDegraded(reports: readonly InstanceReport[], nowMs: number): Finding | undefined {
    const { sinceMs, failingSinceMs, error } = this.#options.storeHealth;
    const others = reports.filter(({ store, instance }) => store === "degraded" && instance !== this.#options.instance);
    return storeDegraded({
      isDegraded: sinceMs !== undefined,
      failingSinceMs,
      lastError: error && causeInWords(error),
      degradedElsewhere: others.length,
      lastMinute: this.#lastMinute,
      nowMs,
    });
  }

  async #storeMemory(): Promise<readonly Finding[]> {
    const nodes = await this.#options.nodes().catch(() => []);
    const { sinceMs, error = "" } = this.#options.storeHealth;
    const oomSeen = sinceMs !== undefined && error.includes("OOM");
    const found = storeMemory({ nodes }, { evictedBefore: this.#evicted, oomSeen });
    this.#evicted = new Map(nodes.map(({ address, evictedKeys = 0 }) => [address, evictedKeys]));
    return found;
  }

  async #lookAtSeries(
    nowMs: number,
    judged: Set<AlertKind>,
    policy: AlertPolicy,
  ): Promise<readonly (Finding | undefined)[]> {
    const round = await this.#series.next(nowMs);
    if (round === undefined) return [];
    this.#lastMinute = round.lastMinute;
    for (const kind of ["unusual-rate", "refusal-share", "threshold"] as const) judged.add(kind);
    const findings: (Finding | undefined)[] = [];
    for (const [i, series] of round.series.entries()) {
      // A series takes about 50 µs: checks are answered between two slices.
      if (i % SERIES_A_SLICE === SERIES_A_SLICE - 1) await nextTurn();
      const window = round.windowOf(series);
      const rule = ruleOfSeries(series);
      findings.push(
        unusualRate(window, rule, this.#tuningOf(policy, "unusual-rate", rule)),
        refusalShare(window, rule, this.#tuningOf(policy, "refusal-share", rule)),
      );
    }
    findings.push(...this.#lookAtThresholds(round, policy));
    return [...findings, ...(await this.#lookAtKeys(round, { nowMs, judged, policy }))];
  }

  /** Includes rules without traffic: a threshold may require some. */
  #lookAtThresholds(round: SeriesRound, { conditions }: AlertPolicy): readonly (Finding | undefined)[] {
    return conditions.flatMap((condition) => {
      const { rule, tag } = condition;
      if (tag === undefined && rule === undefined)
        return [ownThreshold(round.windowOf(TOTAL_SERIES), condition, undefined)];
      const rules = tag === undefined ? [rule!] : (this.#options.tagged?.(tag) ?? []);
      return rules.map((one) => ownThreshold(round.windowOf(seriesOfRule(one)), condition, one));
    });
  }

  async #lookAtKeys(
    round: SeriesRound,
    { nowMs, judged, policy }: { nowMs: number; judged: Set<AlertKind>; policy: AlertPolicy },
  ): Promise<readonly Finding[]> {
    const top = await this.#options.topKeys().catch(() => undefined);
    if (top === undefined) return [];
    judged.add("new-heavy-key");
    const was = await this.#shared.read(KNOWN_KEYS);
    const before: KnownKeys = new Map(parseSharedText<[string, never][]>(was) ?? []);
    const { findings, known } = newHeavyKeys({
      top,
      checksOf: (rule) => sumOf(round.windowOf(seriesOfRule(rule)).checks, MINUTES - 60, MINUTES),
      known: before,
      knownMinutes: round.knownMinutes,
      nowMs,
      heavyShareOf: (rule) => this.#tuningOf(policy, "new-heavy-key", rule)?.above,
    });
    const news = [...known.keys()].some((digest) => !before.has(digest));
    if (news || (known.size > 0 && nowMs - this.#knownWrittenMs >= KNOWN_EVERY_MS)) {
      this.#knownWrittenMs = nowMs;
      await this.#shared.swap(KNOWN_KEYS, { was, now: JSON.stringify([...known]), keepMs: KNOWN_KEEP_MS });
    }
    return findings;
  }
}
