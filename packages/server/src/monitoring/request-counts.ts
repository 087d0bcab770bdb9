/**
 * Counts answered requests by transport and outcome, with their latencies, on the path of every request.
 * Plain arrays, as in `decision-counts.ts`; converted to prom-client's format when read.
 */
import { bucketOf, LATENCY_BOUNDS_MS, LATENCY_BUCKETS } from "./latency-buckets.js";
import { histogramSamples, type ReadableMetric, readableMetric } from "./readable-metric.js";

export type Transport = "http" | "grpc" | "forward-auth" | "proxy";
const transports: readonly Transport[] = ["http", "grpc", "forward-auth", "proxy"];

/** The outcome of a request. */
export interface Outcome {
  readonly allowed: boolean;
  /** Whether any rule matched. */
  readonly matched: boolean;
}

class TransportCounts {
  allowed = 0;
  refused = 0;
  unmatched = 0;
  sumMs = 0;
  readonly buckets = new Float64Array(LATENCY_BUCKETS);
}

export class RequestCounts {
  readonly #byTransport: Readonly<Record<Transport, TransportCounts>> = {
    http: new TransportCounts(),
    grpc: new TransportCounts(),
    "forward-auth": new TransportCounts(),
    proxy: new TransportCounts(),
  };

  add(transport: Transport, { allowed, matched }: Outcome, tookMs: number): void {
    const counts = this.#byTransport[transport];
    if (allowed) counts.allowed++;
    else counts.refused++;
    if (!matched) counts.unmatched++;
    counts.sumMs += tookMs;
    counts.buckets[bucketOf(tookMs)]!++;
  }

  /** Summed over all transports. */
  latencies(): Float64Array {
    const sum = new Float64Array(LATENCY_BUCKETS);
    for (const transport of transports) {
      const { buckets } = this.#byTransport[transport];
      for (let i = 0; i < LATENCY_BUCKETS; i++) sum[i]! += buckets[i]!;
    }
    return sum;
  }

  requests(name: string, help: string): ReadableMetric {
    return readableMetric({ name, help, type: "counter" }, () =>
      this.#inUse().flatMap(([transport, { allowed, refused }]) => [
        { value: allowed, labels: { transport, outcome: "allowed" } },
        { value: refused, labels: { transport, outcome: "refused" } },
      ]),
    );
  }

  unmatched(name: string, help: string): ReadableMetric {
    return readableMetric({ name, help, type: "counter" }, () =>
      this.#inUse().map(([transport, { unmatched }]) => ({ value: unmatched, labels: { transport } })),
    );
  }

  /** In seconds, as Prometheus expects. */
  latency(name: string, help: string): ReadableMetric {
    return readableMetric({ name, help, type: "histogram" }, () =>
      this.#inUse().flatMap(([transport, { buckets, sumMs }]) =>
        histogramSamples({
          name,
          bounds: LATENCY_BOUNDS_MS,
          counts: buckets,
          sum: sumMs,
          scale: 1 / 1_000,
          labels: { transport },
        }),
      ),
    );
  }

  #inUse(): [Transport, TransportCounts][] {
    return transports
      .map((transport): [Transport, TransportCounts] => [transport, this.#byTransport[transport]])
      .filter(([, { allowed, refused }]) => allowed + refused > 0);
  }
}
