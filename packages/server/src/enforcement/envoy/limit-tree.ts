/**
 * Finds the limit that a request's descriptor meets, as the reference implementation does: level by level, the exact value first, then
 * wildcards in the order of the file, then the bare key; the depth must be that of the entries. Pure.
 */
import { runAtOnce, type Sliced, Stride } from "sluice/internal";
import type { Descriptor, Domain, Limit } from "./descriptor-config.js";
import { type MetLevel, type MetricKey, metricKey } from "./metric-key.js";
import { type Wildcard, wildcardOf } from "./wildcard.js";

export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** A limit where it stands in the configuration. */
export interface PlacedLimit {
  readonly limit: Limit;
  readonly domain: string;
  /** Keys and values as the file writes them, from the outermost level: what tells this limit from all others. */
  readonly path: readonly Entry[];
  /** Whether values share a counter at this level or above. */
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
  readonly placed: PlacedLimit | undefined;
  /** By key; empty at a leaf. */
  readonly next: ReadonlyMap<string, Level>;
}

export interface Found {
  readonly placed: PlacedLimit;
  /** The entries that are counted by, joined so that no two lists look alike. */
  readonly counter: string;
  /** Computed on demand: most services have no metrics under the reference's names. */
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

/** `domains`: each once. */
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
    const counted: string[] = [domain];
    const met: Node[] = [];
    for (let i = 0; i < entries.length; i++) {
      const { key, value } = entries[i]!;
      const node = levels === undefined ? undefined : matchAt(levels.get(key), value);
      if (node === undefined) return undefined;
      counted.push(key, node.sharesThreshold ? node.value : value);
      met.push(node);
      if (i === entries.length - 1) return node.placed && foundAt(node.placed, { domain, entries, met, counted });
      levels = node.next;
    }
    return undefined;
  }
}

function foundAt(
  placed: PlacedLimit,
  made: { domain: string; entries: readonly Entry[]; met: readonly Node[]; counted: readonly string[] },
): Found {
  return {
    placed,
    counter: JSON.stringify(made.counted),
    metricKey: () => metricKey({ ...made, detailed: placed.detailedMetric }),
  };
}

/** The counter of a descriptor of which each value counts by itself. */
export function counterOf(domain: string, entries: readonly Entry[]): string {
  return JSON.stringify([domain, ...entries.flatMap(({ key, value }) => [key, value])]);
}

/** Most descriptors have none below them. */
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
