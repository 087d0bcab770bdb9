/**
 * A limiter's options `globalStore` and `region`: their validation, and the store made from them.
 */
import { SluiceError } from "../errors.js";
import type { Rule } from "../rules/rule.js";
import type { Store } from "../store/store.js";
import { RegionalStore } from "./regional-store.js";

/** It becomes a metrics label, and part of the region's holder name in the global store. */
const REGION_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

interface RegionOptions {
  readonly globalStore?: Store;
  readonly region?: string;
}

export function checkRegion({ globalStore, region }: RegionOptions, refused: (why: string) => SluiceError): void {
  if ((globalStore === undefined) !== (region === undefined)) {
    const [given, missing] = region === undefined ? ["globalStore", "region"] : ["region", "globalStore"];
    throw refused(`${missing}: expected one beside ${given}; each needs the other`);
  }
  if (region !== undefined && (typeof region !== "string" || !REGION_NAME.test(region))) {
    throw refused(
      `region: expected a name such as "eu-west" (letters, digits, ".", "_", "-"), got ${JSON.stringify(region)}`,
    );
  }
}

/** Undefined if there is only one store. */
export function regionalStoreOf(
  { globalStore, region }: RegionOptions,
  regionStore: Store,
  isGlobal: (rule: string) => boolean,
): RegionalStore | undefined {
  if (globalStore === undefined || region === undefined) return undefined;
  return new RegionalStore({ region, regionStore, globalStore, isGlobal });
}

/** If it were counted in each region separately, all regions together would exceed a global limit. */
export function refuseGlobal(rules: readonly Rule[]): void {
  const at = rules.findIndex(({ scope }) => scope === "global");
  if (at < 0) return;
  const path = `rules[${at}].scope`;
  const message = `expected region, got global: rule ${rules[at]!.id} needs a global store (globalStore and region, or --global-store and --region)`;
  throw new SluiceError("invalid-rules", `${path}: ${message}`, { mistakes: [{ path, message }] });
}
