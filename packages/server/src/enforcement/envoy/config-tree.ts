/**
 * From domains to the tree that requests are looked up in: domains that come twice, and numbers that no rule could have, are mistakes.
 */
import { validateRules } from "sluice";
import type { Descriptor, Domain } from "./descriptor-config.js";
import { duplicatesIn } from "./descriptor-config.js";
import { ruleOf } from "./envoy-rules.js";
import { LimitTree } from "./limit-tree.js";

export interface TreeOptions {
  /** Whether several files or resources may tell of the same domain. */
  readonly merge: boolean;
  /** Whether every limit is a quota (`QUOTA_MODE` of the reference). */
  readonly allQuotas?: boolean;
}

export interface GivenDomain {
  readonly domain: Domain;
  /** Its file or resource, for messages. */
  readonly from: string;
}

export function treeOf(
  given: readonly GivenDomain[],
  options: TreeOptions,
): { tree: LimitTree } | { mistakes: string[] } {
  const mistakes: string[] = [];
  const tree = new LimitTree(joinDomains(given, options, mistakes), options);
  if (mistakes.length === 0) mistakes.push(...numberMistakes(tree));
  return mistakes.length > 0 ? { mistakes } : { tree };
}

/**
 * Several files may tell of the same domain only where that is allowed (`MERGE_DOMAIN_CONFIG` of the reference): then their descriptors
 * are joined in order. A descriptor that two of them have is a mistake either way.
 */
function joinDomains(given: readonly GivenDomain[], { merge }: { merge: boolean }, mistakes: string[]): Domain[] {
  const joined = new Map<string, { descriptors: Descriptor[]; from: string }>();
  for (const { domain, from } of given) {
    const other = joined.get(domain.domain);
    if (other === undefined) {
      joined.set(domain.domain, { descriptors: [...domain.descriptors], from });
      continue;
    }
    if (!merge) {
      const name = JSON.stringify(domain.domain);
      mistakes.push(
        `${from}: domain: duplicate domain ${name}, also in ${other.from}; --envoy-merge-domains joins them`,
      );
      continue;
    }
    const before = other.descriptors.length;
    other.descriptors.push(...domain.descriptors);
    for (const { at, message } of duplicatesIn(other.descriptors)) {
      if (at >= before) mistakes.push(`${from}: descriptors[${at - before}]: ${message}, also in ${other.from}`);
    }
    other.from += `, ${from}`;
  }
  return Array.from(joined, ([domain, { descriptors }]) => ({ domain, descriptors }));
}

/** Checks by the rule table whether an algorithm's numbers fit it. */
function numberMistakes({ limits }: LimitTree): string[] {
  return limits.flatMap((placed) => {
    const rule = ruleOf(placed);
    const outcome = rule === undefined ? undefined : validateRules([rule]);
    if (outcome === undefined || "rules" in outcome) return [];
    const place = [
      placed.domain,
      ...placed.path.map(({ key, value }) => (value === "" ? key : `${key}=${value}`)),
    ].join(" > ");
    return outcome.mistakes.map(({ path, message }) => `${place}: ${path.replace(/^rules\[0\]\.?/, "")}: ${message}`);
  });
}
