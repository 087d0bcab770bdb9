/** Regions that share limits. */

/** `GET /admin/v1/regions` */
export interface RegionsView {
  readonly atMs: number;
  /** `all`: from the global store. `region`: that does not answer, and only this region's instances are known. `instance`: nor does the region's store. */
  readonly scope: "all" | "region" | "instance";
  /** The region of the instance that answers; absent without --global-store. */
  readonly own?: string;
  /** By name; empty without --global-store. */
  readonly regions: readonly RegionView[];
}

export interface RegionView {
  readonly region: string;
  /** `cut-off`: none of its instances reaches the global store. `silent`: heard of within a day, but not in the last ten seconds. */
  readonly state: "up" | "cut-off" | "silent";
  /** Present unless it is up: since when, or when it was last heard of, by its own clock. */
  readonly sinceMs?: number;
  readonly instances: number;
  readonly cutOffInstances: number;
  /** Under all rules. */
  readonly requestsPerSecond: number;
  readonly refusedPerSecond: number;
  /** Under rules with scope global; of these, those that waited for units, and those that a failure policy answered. */
  readonly globalPerSecond: number;
  readonly waitedPerSecond: number;
  readonly byPolicyPerSecond: number;
  /** From the global store. */
  readonly fetchesPerSecond: number;
  /** Units of global counters in the region's pools, as they were filled, and how many pools. */
  readonly units: number;
  readonly pools: number;
  /** To the global store, the median of its instances; absent before it was first reached. */
  readonly roundTripMs?: number;
}
