/**
 * Looks up the limit for a request's descriptor, as the reference implementation does: level by level, the exact value first, then
 * wildcards in file order, then the bare key; the depth must equal the number of entries. Pure.
 */
import { runAtOnce, type Sliced, Stride } from "sluice/internal";
import type { Descriptor, Domain, Limit } from "./descriptor-config.js";
import { type MetLevel, type MetricKey, metricKey } from "./metric-key.js";
import { type Wildcard, wildcardOf } from "./wildcard.js";

export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** A limit with its position in the configuration. */
export interface PlacedLimit {
  readonly limit: Limit;
  readonly domain: string;
  /** Keys and values as in the file, outermost first; identifies the limit. */
  readonly path: readonly Entry[];
  /** Whether this level or one above shares its counter among values. */
  readonly shared: boolean;
  readonly shadow: boolean;
  readonly quota: boolean;
  readonly detailedMetric: boolean;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

interface Level {
  readonly exact: Map<string, Node>;
  readonly wildcards: { readonly fits: Wildcard; readonly node: Node }[];
  bare: Node | undefined;
}

interface Node extends MetLevel {
  /** Whether it matches values that the file does not list, each with its own counter. */
  readonly isOpen: boolean;
  readonly placed: PlacedLimit | undefined;
  /** By key; empty at a leaf. */
  readonly next: ReadonlyMap<string, Level>;
}

export interface Found {
  readonly placed: PlacedLimit;
  /** Identifies the counter within its limit: the values left open by the file, joined unambiguously. */
  readonly counter: string;
  /** Lazy: most services have no metrics under the reference's names. */
  readonly metricKey: () => MetricKey;
}

interface Built {
  readonly domains: ReadonlyMap<string, ReadonlyMap<string, Level>>;
  readonly limits: readonly PlacedLimit[];
  readonly allQuotas: boolean;
}

export function limitTree(domains: readonly Domain[], options: { allQuotas?: boolean } = {}): LimitTree {
  return runAtOnce(buildingLimitTree(domains, options));
}

/** `domains` must be unique. */
export function* buildingLimitTree(domains: readonly Domain[], { allQuotas = false } = {}): Sliced<LimitTree> {
  const stride = new Stride();
  const limits: PlacedLimit[] = [];
  const built = new Map<string, ReadonlyMap<string, Level>>();
  for (const { domain, descriptors } of domains) {
    const above = { domain, path: [], shared: false, allQuotas };
    built.set(domain, yield* levelsOf(descriptors, above, { limits, stride }));
  }
  return new LimitTree({ domains: built, limits, allQuotas });
}

export class LimitTree {
  readonly #domains: Built["domains"];
  readonly limits: readonly PlacedLimit[];
  readonly allQuotas: boolean;

  constructor({ domains, limits, allQuotas }: Built) {
    this.#domains = domains;
    this.limits = limits;
    this.allQuotas = allQuotas;
  }

  knows(domain: string): boolean {
    return this.#domains.has(domain);
  }

  find(domain: string, entries: readonly Entry[]): Found | undefined {
    let levels = this.#domains.get(domain);
    const open: string[] = [];
    const met: Node[] = [];
    for (let i = 0; i < entries.length; i++) {
      const { key, value } = entries[i]!;
      const node = levels === undefined ? undefined : matchAt(levels.get(key), value);
      if (node === undefined) return undefined;
      if (node.isOpen) open.push(value);
      met.push(node);
      if (i === entries.length - 1) return node.placed && foundAt(node.placed, { domain, entries, met, open });
      levels = node.next;
    }
    return undefined;
  }
}

function foundAt(
  placed: PlacedLimit,
  made: { domain: string; entries: readonly Entry[]; met: readonly Node[]; open: readonly string[] },
): Found {
  return {
    placed,
    counter: spellOpen(made.open),
    metricKey: () => metricKey({ ...made, detailed: placed.detailedMetric }),
  };
}

/** A limit always has the same number of open values, so a single one needs no quotes; shorter keys cost less in Redis. */
function spellOpen(values: readonly string[]): string {
  if (values.length === 1) return values[0]!;
  return values.length === 0 ? "*" : JSON.stringify(values);
}

/** The counter of a descriptor without a configured limit: one per combination of values. */
export function counterOf(domain: string, entries: readonly Entry[]): string {
  return JSON.stringify([domain, ...entries.flatMap(({ key, value }) => [key, value])]);
}

/** Shared, as most descriptors have no children. */
const NO_LEVELS: ReadonlyMap<string, Level> = new Map();

function* levelsOf(
  descriptors: readonly Descriptor[],
  above: { domain: string; path: readonly Entry[]; shared: boolean; allQuotas: boolean },
  { limits, stride }: { limits: PlacedLimit[]; stride: Stride },
): Sliced<ReadonlyMap<string, Level>> {
  const levels = new Map<string, Level>();
  for (const descriptor of descriptors) {
    const { key, value, limit, shadow, detailedMetric, metadata } = descriptor;
    const quota = above.allQuotas || descriptor.quota;
    const path = [...above.path, { key, value }];
    const shared = above.shared || descriptor.shareThreshold;
    const placed = limit && { limit, domain: above.domain, path, shared, shadow, quota, detailedMetric, metadata };
    if (placed !== undefined) limits.push(placed);
    const node: Node = {
      placed,
      value,
      isOpen: (value === "" || value.includes("*")) && !descriptor.shareThreshold,
      sharesThreshold: descriptor.shareThreshold,
      valueToMetric: descriptor.valueToMetric,
      next:
        descriptor.descriptors.length === 0
          ? NO_LEVELS
          : yield* levelsOf(descriptor.descriptors, { ...above, path, shared }, { limits, stride }),
    };
    const level: Level = levels.get(key) ?? { exact: new Map(), wildcards: [], bare: undefined };
    levels.set(key, level);
    if (value === "") level.bare = node;
    else {
      level.exact.set(value, node);
      if (value.includes("*")) level.wildcards.push({ fits: wildcardOf(value), node });
    }
    if (stride.isOver()) yield;
  }
  return levels;
}

function matchAt(level: Level | undefined, value: string): Node | undefined {
  if (level === undefined) return undefined;
  const exact = level.exact.get(value);
  if (exact !== undefined) return exact;
  for (const { fits, node } of level.wildcards) if (fits(value)) return node;
  return level.bare;
}
