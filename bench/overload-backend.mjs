/**
 * The backend of `overload-server.mjs`: places that work for as long as the scenario says, with a queue before them. Simulated: each request's
 * end is known when it comes, and a timer waits for it. A timer that fires late delays an answer, but no place starts its next request later for
 * it: what the places can do is what the scenario says, whatever else the machine does.
 */
export class Backend {
  /** When each place is free. */
  #freeAtMs;
  #traffic;
  #slowness;
  #judged;
  #drawn = { count: 0, sumMs: 0 };

  /** @param {import("./overload-model.mjs").Scenario} scenario @param {import("./overload-model.mjs").Traffic} traffic */
  constructor(scenario, traffic) {
    this.#freeAtMs = Array.from({ length: scenario.places }, () => 0);
    this.#traffic = traffic;
    this.#slowness = scenario.slowness ?? (() => 1);
    this.#judged = { fromMs: (scenario.warmSeconds ?? 0) * 1000, toMs: scenario.seconds * 1000 };
  }

  /** Calls back when a request that comes now has been served. @param {number} nowMs @param {() => void} done */
  serve(nowMs, done) {
    const free = this.#freeAtMs;
    let place = 0;
    for (let i = 1; i < free.length; i++) if (free[i] < free[place]) place = i;
    const startMs = Math.max(nowMs, free[place]);
    const serviceMs = this.#traffic.serviceMs(startMs);
    free[place] = startMs + serviceMs;
    if (startMs >= this.#judged.fromMs && startMs < this.#judged.toMs) {
      this.#drawn.count++;
      this.#drawn.sumMs += serviceMs / this.#slowness(startMs / 1000);
    }
    setTimeout(done, free[place] - nowMs);
  }

  /** The mean service time of the run. 5000 draws miss the mean of their distribution by more than one percent: capacity is what was drawn. */
  get drawnMeanMs() {
    return this.#drawn.sumMs / this.#drawn.count;
  }
}
