/**
 * What is known about one key: its traffic by rule and period, from the top-key tables, and its last refusals, from the sampled log.
 * In: attributes. A rule's key matches if all its key attributes are given with these values. Out: the view.
 * If the other instances are unreachable, shows this instance's data of the current quarter hour.
 */
import { type Attributes, type Rule, readCounterKey } from "sluice";
import { spellValues } from "sluice/internal";
import type { SharedState } from "../../instance/shared-state.js";
import { ownField } from "../../own-fields.js";
import { type KeySummary, mostOf, parseSummary } from "../top-keys/key-summary.js";
import { periodsOf } from "../top-keys/read-top-keys.js";
import type { TopKeys } from "../top-keys/top-keys.js";
import type { KeyRefusal, KeyRuleTraffic, KeyView } from "../views/keys.js";
import type { Scope } from "../views/time.js";
import { keyDigest, type LoggedRefusal, type RefusalLog } from "./refusal-log.js";

export const REFUSALS_PREFIX = "refusals:";
const MOST_REFUSALS = 50;

interface KeySources {
  readonly shared: SharedState;
  readonly topKeys: TopKeys;
  readonly log: RefusalLog;
  rules(): readonly Rule[];
}

interface KeyQuery {
  readonly attributes: Attributes;
  readonly fromMs: number;
  readonly toMs: number;
}

export async function readKey(sources: KeySources, { attributes, fromMs, toMs }: KeyQuery): Promise<KeyView> {
  const { prefix, lengthMs } = periodsOf(fromMs, Date.now());
  let scope: Scope = "fleet";
  const [summaries, refusals] = await Promise.all([
    readSummaries(sources, prefix),
    sources.shared.readAll(REFUSALS_PREFIX).then((texts) => [...texts.values()].flatMap(parseRefusals)),
  ]).catch((): [Map<number, KeySummary[]>, LoggedRefusal[]] => {
    scope = "instance";
    const nowMs = Date.now();
    return [new Map([[nowMs - (nowMs % lengthMs), [sources.topKeys.quarter()]]]), [...sources.log.quarter()]];
  });
  const firstMs = fromMs - (fromMs % lengthMs);
  const periods = Array.from({ length: Math.ceil((toMs - firstMs) / lengthMs) }, (_, i) => firstMs + i * lengthMs);
  return {
    atMs: Date.now(),
    scope,
    periodMs: lengthMs,
    periods: periods.map((atMs) => ({ atMs, isKnown: summaries.has(atMs) })),
    rules: trafficOf({ attributes, rules: sources.rules() }, periods, summaries),
    refusals: refusalsOf(refusals, sources.rules(), attributes),
    refusalValues: sources.log.values,
  };
}

async function readSummaries({ shared }: KeySources, prefix: string): Promise<Map<number, KeySummary[]>> {
  const byStart = new Map<number, KeySummary[]>();
  for (const [name, text] of await shared.readAll(prefix)) {
    const atMs = Number.parseInt(name.slice(prefix.length), 10);
    byStart.set(atMs, [...(byStart.get(atMs) ?? []), parseSummary(text)]);
  }
  return byStart;
}

/** A key that counts all requests together belongs to no client. */
function isThis(attributes: Attributes, key: Readonly<Record<string, string>>): boolean {
  const entries = Object.entries(key);
  return entries.length > 0 && entries.every(([name, value]) => String(ownField(attributes, name)) === value);
}

/** By rule: the digest that a counter's key contains instead of overlong values. */
function digestsOf(rules: readonly Rule[], attributes: Attributes): ReadonlyMap<string, string> {
  const spelled = rules
    .filter(({ key }) => key.every((name) => ownField(attributes, name) !== undefined))
    .map(({ id, key }) => {
      const values = key.map((name) => String(attributes[name]));
      return [id, spellValues(key, values)] as const;
    });
  return new Map(spelled.filter(([, text]) => text.startsWith("#")));
}

/** A key missing from a table was rare: 0 means "too few to be listed". */
function trafficOf(
  { attributes, rules }: { attributes: Attributes; rules: readonly Rule[] },
  periods: readonly number[],
  summaries: ReadonlyMap<number, readonly KeySummary[]>,
): KeyRuleTraffic[] {
  const digests = digestsOf(rules, attributes);
  const byRule = new Map<string, { checks: number[]; refused: number[] }>();
  for (const [at, startMs] of periods.entries()) {
    for (const { traffic, refusals } of summaries.get(startMs) ?? []) {
      const refusedBy = new Map(refusals.items.map((item) => [item.key, mostOf(item)]));
      for (const item of traffic.items) {
        const { rule, attributes: key } = readCounterKey(item.key);
        const digest = digests.get(rule);
        const isKey = key === undefined ? digest !== undefined && item.key.includes(digest) : isThis(attributes, key);
        if (!isKey) continue;
        const sums = byRule.get(rule) ?? { checks: periods.map(() => 0), refused: periods.map(() => 0) };
        sums.checks[at]! += mostOf(item);
        sums.refused[at]! += refusedBy.get(item.key) ?? item.refused;
        byRule.set(rule, sums);
      }
    }
  }
  return [...byRule].map(([rule, sums]) => ({ rule, ...sums }));
}

function refusalsOf(all: readonly LoggedRefusal[], rules: readonly Rule[], attributes: Attributes): KeyRefusal[] {
  const wanted = new Set(
    rules
      .filter(({ key }) => key.length > 0 && key.every((name) => ownField(attributes, name) !== undefined))
      .map(({ id, key }) => keyDigest(id, key, attributes)),
  );
  return all
    .filter(({ digest }) => wanted.has(digest))
    .sort((a, b) => b.atMs - a.atMs)
    .slice(0, MOST_REFUSALS)
    .map(({ digest: _, ...refusal }) => refusal);
}

/** A text from another version must not break the view. */
function parseRefusals(text: string): LoggedRefusal[] {
  const read: unknown = JSON.parse(text);
  return Array.isArray(read) ? (read as LoggedRefusal[]) : [];
}
