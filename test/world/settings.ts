/** What `npm run world` asks for, by environment: scripts/world.mjs writes it, the test reads it. */
export interface WorldSettings {
  readonly ms: number;
  readonly firstSeed: number;
  readonly scenario: string | undefined;
  /** One seed, with its log. */
  readonly seed: number | undefined;
  readonly keep: ReadonlySet<number> | undefined;
}

/** In `npm test`: enough for some thousand worlds, and not the slowest test. */
const TEST_MS = 15_000;

export function readWorldSettings(environment: NodeJS.ProcessEnv): WorldSettings {
  const { WORLD_MS, WORLD_SEED, WORLD_SCENARIO, WORLD_KEEP } = environment;
  return {
    ms: Number(WORLD_MS ?? TEST_MS),
    // Other worlds in every run: what a thousand seeds did not show, the next thousand may.
    firstSeed: Date.now() % 1_000_000_000,
    scenario: WORLD_SCENARIO,
    seed: WORLD_SEED === undefined ? undefined : Number(WORLD_SEED),
    keep: WORLD_KEEP === undefined ? undefined : new Set(WORLD_KEEP.split(",").map(Number)),
  };
}
