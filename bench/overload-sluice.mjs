/** Sluice's own shedder as a contestant of `overload-model.mjs`: the shipped code, on the model's clock and random numbers. */

/**
 * @typedef {import("./overload-model.mjs").Contestant} Contestant
 * @typedef {import("./overload-model.mjs").Scenario} Scenario
 */

/**
 * @param {{ LoadShedder: any, ruleBook: (rules: any[]) => any }} library
 * @param {{ limit: number | "auto", scenario: Scenario }} options
 * @returns {(random: () => number) => Contestant}
 */
export function sluiceContestant({ LoadShedder, ruleBook }, { limit, scenario }) {
  const book = ruleBook([
    {
      id: "keep-serving",
      key: [],
      algorithm: "load-shedding",
      signal: ["inflight"],
      limit,
      class: { attribute: "class", default: "normal" },
      ...(scenario.tenants !== undefined && { fairBy: "tenant" }),
    },
  ]).shedding;
  return (random) => {
    let nowMs = 0;
    let count = 0;
    let lateness = 0;
    const shedder = new LoadShedder({
      now: () => nowMs,
      random,
      newId: () => String(count++),
      lateness: () => lateness,
    });
    return {
      admit(atMs, { class: name, user, tenant }) {
        nowMs = atMs;
        const { refused, place } = shedder.admit([[book, { class: name, user, tenant }]], {
          looks: false,
          holds: true,
        });
        return refused ? undefined : { place };
      },
      end(pass, atMs) {
        nowMs = atMs;
        shedder.release(/** @type {{ place: string }} */ (pass).place);
      },
      late(integral) {
        lateness += integral;
      },
      limit: () => shedder.stats()[0]?.limit,
    };
  };
}
