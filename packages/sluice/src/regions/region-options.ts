/**
 * A limiter's options `globalStore` and `region`: their validation, and the store that they make.
 */
import { SluiceError } from "../errors.js";
import type { Rule } from "../rules/rule.js";
import type { Store } from "../store/store.js";
import { RegionalStore } from "./regional-store.js";

/** A label of metrics, and a part of what the region calls itself in the global store. */
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

/** Undefined where there is one store only. */
export function regionalStoreOf(
  { globalStore, region }: RegionOptions,
  regionStore: Store,
  isGlobal: (rule: string) => boolean,
): RegionalStore | undefined {
  if (globalStore === undefined || region === undefined) return undefined;
  return new RegionalStore({ region, regionStore, globalStore, isGlobal });
}

/** Counted in one region only, a global limit would be passed by all others. */
export function refuseGlobal(rules: readonly Rule[]): void {
  const at = rules.findIndex(({ scope }) => scope === "global");
  if (at < 0) return;
  const path = `rules[${at}].scope`;
  const message = `expected region, got global: rule ${rules[at]!.id} needs a global store (globalStore and region, or --global-store and --region)`;
  throw new SluiceError("invalid-rules", `${path}: ${message}`, { mistakes: [{ path, message }] });
}
