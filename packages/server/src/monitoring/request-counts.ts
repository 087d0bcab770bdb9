/**
 * Counts answered requests by transport and outcome, with their latencies, on the path of every request.
 * Plain arrays, as in `decision-counts.ts`; read in the form that prom-client's registry asks of a metric.
 */
export type Transport = "http" | "grpc" | "forward-auth" | "proxy";
const transports: readonly Transport[] = ["http", "grpc", "forward-auth", "proxy"];

/** From 50 us, where a memory store answers, to beyond any store deadline. In ms. */
const BUCKETS_MS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 50, 100, 250, 1000] as const;

class TransportCounts {
  allowed = 0;
  refused = 0;
  sumMs = 0;
  /** The last counts what is beyond all bounds. */
  readonly buckets = new Float64Array(BUCKETS_MS.length + 1);
}

interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
}

/** What prom-client's registry takes from a metric. */
export interface ReadableMetric {
  readonly name: string;
  get(): Promise<{ name: string; help: string; type: string; aggregator: "sum"; values: Sample[] }>;
  reset(): void;
}

export class RequestCounts {
  readonly #byTransport: Readonly<Record<Transport, TransportCounts>> = {
    http: new TransportCounts(),
    grpc: new TransportCounts(),
    "forward-auth": new TransportCounts(),
    proxy: new TransportCounts(),
  };

  add(transport: Transport, allowed: boolean, tookMs: number): void {
    const counts = this.#byTransport[transport];
    if (allowed) counts.allowed++;
    else counts.refused++;
    counts.sumMs += tookMs;
    let bucket = 0;
    while (bucket < BUCKETS_MS.length && tookMs > BUCKETS_MS[bucket]!) bucket++;
    counts.buckets[bucket]!++;
  }

  requests(name: string, help: string): ReadableMetric {
    return metric({ name, help, type: "counter" }, () =>
      this.#inUse().flatMap(([transport, { allowed, refused }]) => [
        { value: allowed, labels: { transport, outcome: "allowed" } },
        { value: refused, labels: { transport, outcome: "refused" } },
      ]),
    );
  }

  /** In seconds, as Prometheus wants times. */
  latency(name: string, help: string): ReadableMetric {
    return metric({ name, help, type: "histogram" }, () =>
      this.#inUse().flatMap(([transport, { buckets, sumMs }]) => {
        let count = 0;
        const cumulative = [...buckets].map((inBucket, i): Sample => {
          count += inBucket;
          const le = i < BUCKETS_MS.length ? BUCKETS_MS[i]! / 1000 : "+Inf";
          return { value: count, labels: { le, transport }, metricName: `${name}_bucket` };
        });
        const sum: Sample = { value: sumMs / 1000, labels: { transport }, metricName: `${name}_sum` };
        return [...cumulative, sum, { value: count, labels: { transport }, metricName: `${name}_count` }];
      }),
    );
  }

  #inUse(): [Transport, TransportCounts][] {
    return transports
      .map((transport): [Transport, TransportCounts] => [transport, this.#byTransport[transport]])
      .filter(([, { allowed, refused }]) => allowed + refused > 0);
  }
}

function metric(kind: { name: string; help: string; type: string }, read: () => Sample[]): ReadableMetric {
  return {
    name: kind.name,
    get: async () => ({ ...kind, aggregator: "sum", values: read() }),
    reset: () => undefined,
  };
}
