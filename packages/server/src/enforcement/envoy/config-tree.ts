/** Merges the domains of several files or resources, and reports duplicate domains and numbers that no rule accepts. */
import { validateRules } from "sluice";
import type { Descriptor, Domain } from "./descriptor-config.js";
import { duplicatesIn } from "./descriptor-config.js";
import { ruleOf } from "./envoy-rules.js";
import { type LimitTree, limitTree } from "./limit-tree.js";
import { Mistakes } from "./mistakes.js";

export interface TreeOptions {
  /** Whether several files or resources may define the same domain. */
  readonly merge: boolean;
  /** Whether every limit is a quota (`QUOTA_MODE` of the reference). */
  readonly allQuotas?: boolean;
}

export interface GivenDomain {
  readonly domain: Domain;
  /** Its file or resource, for messages. */
  readonly from: string;
}

/** Returns each domain once, checked so that every limit can become a rule. */
export function checkedDomains(
  given: readonly GivenDomain[],
  options: TreeOptions,
): { domains: Domain[] } | { mistakes: string[] } {
  const mistakes = new Mistakes();
  const domains = joinDomains(given, options, mistakes);
  if (!mistakes.some) checkTree(limitTree(domains, options), mistakes);
  return mistakes.some ? { mistakes: mistakes.list() } : { domains };
}

/**
 * Several files may define the same domain only if that is enabled (`MERGE_DOMAIN_CONFIG` of the reference); their descriptors are then
 * concatenated. A descriptor defined twice is a mistake either way.
 */
function joinDomains(given: readonly GivenDomain[], { merge }: { merge: boolean }, mistakes: Mistakes): Domain[] {
  const joined = new Map<string, { descriptors: Descriptor[]; seen: Set<string>; from: string }>();
  for (const { domain, from } of given) {
    const other = joined.get(domain.domain);
    if (other === undefined) {
      const seen = new Set<string>();
      if (merge) duplicatesIn(domain.descriptors, seen);
      joined.set(domain.domain, { descriptors: [...domain.descriptors], seen, from });
      continue;
    }
    if (!merge) {
      const name = JSON.stringify(domain.domain);
      mistakes.add(
        `${from}: domain: duplicate domain ${name}, also in ${other.from}; --envoy-merge-domains joins them`,
      );
      continue;
    }
    for (const descriptor of domain.descriptors) other.descriptors.push(descriptor);
    for (const { at, message } of duplicatesIn(domain.descriptors, other.seen)) {
      mistakes.add(`${from}: descriptors[${at}]: ${message}, also in ${other.from}`);
    }
    other.from += `, ${from}`;
  }
  return Array.from(joined, ([domain, { descriptors }]) => ({ domain, descriptors }));
}

/** Each limit is a rule in memory, of about two kilobytes. */
const MOST_LIMITS = 250_000;

function checkTree(tree: LimitTree, mistakes: Mistakes): void {
  const { length } = tree.limits;
  if (length > MOST_LIMITS) mistakes.add(`descriptors: expected at most ${MOST_LIMITS} limits in all, got ${length}`);
  else checkNumbers(tree, mistakes);
}

/**
 * Checks extra numbers against the algorithm's schema. Most limits have only a unit and a count, which are always valid; skipping them
 * matters, as a control plane may send a hundred thousand while requests wait.
 */
function checkNumbers({ limits }: LimitTree, mistakes: Mistakes): void {
  for (const placed of limits) {
    if (Object.keys(placed.limit.extra).length === 0) continue;
    const rule = ruleOf(placed);
    const outcome = rule === undefined ? undefined : validateRules([rule]);
    if (outcome === undefined || "rules" in outcome) continue;
    const place = [
      placed.domain,
      ...placed.path.map(({ key, value }) => (value === "" ? key : `${key}=${value}`)),
    ].join(" > ");
    for (const { path, message } of outcome.mistakes) {
      mistakes.add(`${place}: ${path.replace(/^rules\[0\]\.?/, "")}: ${message}`);
    }
  }
}
