/**
 * Time in the models of reservations: units by bucket of it, and what happens at which instant. In seconds; nothing here waits.
 */

/** Units by bucket of time. */
export class Profile {
  #bucketS;
  #units;

  /** @param {number} bucketS @param {number} endS */
  constructor(bucketS, endS) {
    this.#bucketS = bucketS;
    this.#units = new Float64Array(Math.ceil(endS / bucketS) + 1);
  }

  /** Evenly. @param {number} fromS @param {number} toS @param {number} units */
  add(fromS, toS, units) {
    if (units === 0) return;
    const lastS = Math.max(toS, fromS + 1e-6);
    this.#parts(fromS, lastS, (bucket, seconds) => {
      this.#units[bucket] = (this.#units[bucket] ?? 0) + (units * seconds) / (lastS - fromS);
    });
  }

  /** @param {number} fromS @param {number} toS */
  sum(fromS, toS) {
    let sum = 0;
    this.#parts(Math.max(0, fromS), toS, (bucket, seconds) => {
      sum += ((this.#units[bucket] ?? 0) * seconds) / this.#bucketS;
    });
    return sum;
  }

  /** The most within any window that ends at a bucket's end. @param {number} windowS @param {number} endS */
  worst(windowS, endS) {
    const [back, last] = [Math.round(windowS / this.#bucketS), Math.round(endS / this.#bucketS)];
    let [worst, sum] = [0, 0];
    for (let i = 0; i < last; i++) {
      sum += (this.#units[i] ?? 0) - (this.#units[i - back] ?? 0);
      worst = Math.max(worst, sum);
    }
    return worst;
  }

  /** @param {number} fromS @param {number} toS @param {(bucket: number, seconds: number) => void} visit */
  #parts(fromS, toS, visit) {
    const bucketS = this.#bucketS;
    for (let bucket = Math.floor(fromS / bucketS); bucket * bucketS < toS; bucket++) {
      const seconds = Math.min(toS, (bucket + 1) * bucketS) - Math.max(fromS, bucket * bucketS);
      if (seconds > 0) visit(bucket, seconds);
    }
  }
}

/** In the order of their times. */
export class Events {
  nowS = 0;
  /** @type {{ atS: number, happens: () => void }[]} */
  #waiting = [];

  /** @param {number} atS @param {() => void} happens */
  at(atS, happens) {
    let [low, high] = [0, this.#waiting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#waiting[middle]?.atS ?? 0) > atS) low = middle + 1;
      else high = middle;
    }
    this.#waiting.splice(low, 0, { atS, happens });
  }

  run() {
    for (let event = this.#waiting.pop(); event !== undefined; event = this.#waiting.pop()) {
      this.nowS = event.atS;
      event.happens();
    }
  }
}
