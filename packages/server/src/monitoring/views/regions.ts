/** Regions that share limits. */

/** `GET /admin/v1/regions` */
export interface RegionsView {
  readonly atMs: number;
  /**
   * `all`: from the global store. `region`: that does not answer, so only this region's instances are known. `instance`: neither does the
   * region's store.
   */
  readonly scope: "all" | "region" | "instance";
  /** The responding instance's region; absent without --global-store. */
  readonly own?: string;
  /** By name; empty without --global-store. */
  readonly regions: readonly RegionView[];
}

export interface RegionView {
  readonly region: string;
  /** `cut-off`: none of its instances reaches the global store. `silent`: seen within a day, but not in the last ten seconds. */
  readonly state: "up" | "cut-off" | "silent";
  /** Unless it is up: since when, or when it was last seen, by its own clock. */
  readonly sinceMs?: number;
  readonly instances: number;
  readonly cutOffInstances: number;
  /** Over all rules. */
  readonly requestsPerSecond: number;
  readonly refusedPerSecond: number;
  /** Under rules with scope global; of these, those that waited for units, and those answered by a failure policy. */
  readonly globalPerSecond: number;
  readonly waitedPerSecond: number;
  readonly byPolicyPerSecond: number;
  /** From the global store. */
  readonly fetchesPerSecond: number;
  /** Units of global counters in the region's pools, as filled, and the number of pools. */
  readonly units: number;
  readonly pools: number;
  /** Round trip to the global store, the median over its instances; absent before the first. */
  readonly roundTripMs?: number;
}
