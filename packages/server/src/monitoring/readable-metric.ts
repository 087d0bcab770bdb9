/** Adapts counts kept elsewhere to prom-client's metric interface: read at each scrape, so that counting needs no labels. */
export interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
}

/** How the values of several workers are combined. */
type Aggregator = "sum" | "max" | "min";

interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** Default "sum". */
  readonly aggregator?: Aggregator;
}

/** A counter owned by another module, read on demand. */
export interface ReadableCounter {
  readonly name: string;
  readonly help: string;
  read(): Sample[];
}

export interface ReadableMetric {
  readonly name: string;
  get(): Promise<Required<Described> & { values: Sample[] }>;
  reset(): void;
}

export function readableMetric(described: Described, read: () => Sample[]): ReadableMetric {
  return {
    name: described.name,
    get: async () => ({ aggregator: "sum", ...described, values: read() }),
    reset: () => undefined,
  };
}

/** Cumulative, as Prometheus expects. `counts` has one more entry than `bounds`; `scale` converts our unit to Prometheus's. */
export function histogramSamples(histogram: {
  name: string;
  bounds: readonly number[];
  counts: ArrayLike<number>;
  sum: number;
  scale: number;
  labels: Readonly<Record<string, string>>;
}): Sample[] {
  const { name, bounds, counts, sum, scale, labels } = histogram;
  let count = 0;
  const buckets = Array.from(counts, (inBucket, i): Sample => {
    count += inBucket;
    const le = i < bounds.length ? Number((bounds[i]! * scale).toPrecision(6)) : "+Inf";
    return { value: count, labels: { le, ...labels }, metricName: `${name}_bucket` };
  });
  return [
    ...buckets,
    { value: sum * scale, labels, metricName: `${name}_sum` },
    { value: count, labels, metricName: `${name}_count` },
  ];
}
