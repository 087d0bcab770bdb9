/**
 * A latency histogram with buckets of 1 % width: a million requests take the memory of a thousand numbers.
 * In: microseconds to minutes. Out: percentiles, accurate to 1 %; the maximum is exact. Pure.
 */
const WIDTH = Math.log(1.01);
/** Everything beyond an hour is one bucket: no request may take that long. */
const LONGEST_US = 3_600_000_000;

export class BenchLatency {
  private readonly buckets = new Float64Array(Math.ceil(Math.log(LONGEST_US) / WIDTH) + 1);
  private count = 0;
  private longestMs = 0;

  record(ms: number, times = 1): void {
    const us = Math.min(LONGEST_US, Math.max(1, ms * 1_000));
    this.buckets[Math.round(Math.log(us) / WIDTH)]! += times;
    this.count += times;
    this.longestMs = Math.max(this.longestMs, ms);
  }

  get maxMs(): number {
    return this.longestMs;
  }

  /** The smallest latency that `percent` of the requests did not exceed; 0 without requests. */
  percentileMs(percent: number): number {
    const rank = Math.ceil((percent / 100) * this.count);
    let seen = 0;
    for (let i = 0; i < this.buckets.length && this.count > 0; i++) {
      seen += this.buckets[i]!;
      if (seen >= rank) return Math.min(this.longestMs, Math.exp(i * WIDTH) / 1_000);
    }
    return this.longestMs;
  }
}
