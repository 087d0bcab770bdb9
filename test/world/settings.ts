/** What `npm run world` asks for, by environment: scripts/world.mjs writes it, the test reads it. */
export interface WorldSettings {
  /** For how long new seeds are run; undefined: `seeds` of them. */
  readonly ms: number | undefined;
  readonly seeds: number;
  readonly firstSeed: number;
  readonly scenario: string | undefined;
  /** One seed, with its log. */
  readonly seed: number | undefined;
  readonly keep: ReadonlySet<number> | undefined;
}

/** In `npm test`: the same worlds on every machine, so that a change is to blame for what they show. New ones: `npm run world`. */
const TEST_SEEDS = 25;

export function readWorldSettings(environment: NodeJS.ProcessEnv): WorldSettings {
  const { WORLD_MS, WORLD_SEED, WORLD_SCENARIO, WORLD_KEEP } = environment;
  return {
    ms: WORLD_MS === undefined ? undefined : Number(WORLD_MS),
    seeds: TEST_SEEDS,
    // By `npm run world` others in every run: what a thousand seeds did not show, the next thousand may.
    firstSeed: WORLD_MS === undefined ? 1 : Date.now() % 1_000_000_000,
    scenario: WORLD_SCENARIO,
    seed: WORLD_SEED === undefined ? undefined : Number(WORLD_SEED),
    keep: WORLD_KEEP === undefined ? undefined : new Set(WORLD_KEEP.split(",").map(Number)),
  };
}
