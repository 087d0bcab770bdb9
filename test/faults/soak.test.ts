/** The soak, for 25 s; `npm run soak -- --minutes 10` runs it for longer. */
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { randomOf } from "../harness/random.js";
import { makeUrgent } from "../harness/server-process.js";
import { soak } from "./soak.js";

const ms = Number(process.env.SOAK_MS ?? 25_000);
const seed = Number(process.env.SOAK_SEED ?? Date.now() % 2 ** 31);

describe.skipIf(whyMissing("redis"))(
  "a soak under delays, cuts, half-open connections, lost replies and failovers",
  () => {
    beforeAll(() => makeUrgent());

    test(
      "admits nothing beyond the bound, charges nothing twice, and loses nothing",
      async () => {
        const found = await soak({ ms, random: randomOf(seed) });
        const faults = Object.entries(found.faults).map(([name, count]) => `${name} ${count}`);
        console.log(
          [
            `soak of ${ms / 1_000} s, seed ${seed}: ${found.checks} checks (${found.byPolicy} by policy), ${found.orders} orders, ${found.refunds} refunds, ${found.settled} reservations, ${found.features.prefetched} from units in hand, ${found.features.blocked} keys blocked, ${found.features.shed} shed`,
            `faults: ${faults.join(", ")}`,
            "| admitted beyond the bound | charged twice | lost |",
            "|---|---|---|",
            `| ${found.beyondBound} | ${found.chargedTwice} | ${found.lost} |`,
            `of these, with prefetch, blocks and shedding: ${found.features.beyondBound}, ${found.features.chargedTwice}, ${found.features.lost}`,
            ...found.features.findings,
          ].join("\n"),
        );
        expect(found).toMatchObject({ beyondBound: 0, chargedTwice: 0, lost: 0 });
        expect(found.checks).toBeGreaterThan(ms / 10);
        expect(found.orders).toBeGreaterThan(50);
        expect(found.settled).toBeGreaterThan(50);
        expect(found.features.prefetched).toBeGreaterThan(50);
        expect(found.features.blocked).toBeGreaterThan(5);
        expect(found.features.shed).toBeGreaterThan(5);
      },
      ms + 120_000,
    );
  },
);
