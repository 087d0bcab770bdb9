import { Duplex } from "node:stream";
import { createLimiter } from "sluice";
import { expect, test } from "vitest";
import { ownAttributes } from "../own-attributes.js";
import type { QuotaResponse, UsageReports } from "./quota-messages.js";
import { type QuotaCall, QuotaService } from "./quota-service.js";

/** A stream as grpc-js provides it. `abandoned` counts the buckets that this Envoy was told to abandon. */
class Envoy extends Duplex {
  readonly #peer: string;
  readonly #names = new Set<string>();
  #wake = (): void => undefined;
  abandoned = 0;

  constructor(service: QuotaService, peer: string) {
    super({ objectMode: true });
    this.#peer = peer;
    service.serve(this as unknown as QuotaCall);
  }

  getPeer(): string {
    return this.#peer;
  }

  override _read(): void {}

  override _write({ bucketAction }: QuotaResponse, _encoding: string, done: () => void): void {
    for (const { bucketId, abandonAction } of bucketAction) {
      this.#names.delete(bucketId.bucket.name!);
      if (abandonAction !== undefined) this.abandoned++;
    }
    done();
    this.#wake();
  }

  /** Resolves when every bucket has been answered. */
  async report(buckets: number): Promise<void> {
    const names = Array.from({ length: buckets }, (_, i) => `${this.#peer}-${i}`);
    for (const name of names) this.#names.add(name);
    const usage = { numRequestsAllowed: 1, numRequestsDenied: 0 };
    const bucketQuotaUsages = names.map((name) => ({ bucketId: { bucket: { name } }, ...usage }));
    this.push({ domain: "shop", bucketQuotaUsages } satisfies UsageReports);
    while (this.#names.size > 0) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}

test("all streams together are bounded in buckets, and a late stream gets its share of them", async () => {
  const service = new QuotaService({
    limiter: createLimiter({ rules: [] }),
    log: { debug() {}, info() {}, warn() {}, error() {} } as never,
    onOutcome: () => undefined,
    attributesOf: (domain, { bucket }) =>
      ownAttributes(domain, [{ entries: Object.entries(bucket).map(([key, value]) => ({ key, value })) }]),
    mostBuckets: 1_000,
  });
  const greedy = Array.from({ length: 5 }, (_, i) => new Envoy(service, `greedy${i}`));
  for (const envoy of greedy) await envoy.report(400);
  expect(service.counts).toEqual({ streams: 5, buckets: 1_000 });
  const late = Array.from({ length: 15 }, (_, i) => new Envoy(service, `late${i}`));
  for (const envoy of late) {
    await envoy.report(50);
    expect(service.counts.buckets).toBeLessThanOrEqual(1_000);
  }
  expect(late.map(({ abandoned }) => abandoned)).toEqual(Array(15).fill(0));
  // First the 1000 beyond the bound, then at least as many as the late streams took.
  expect(greedy.reduce((sum, { abandoned }) => sum + abandoned, 0)).toBeGreaterThanOrEqual(1_000 + 15 * 50);
  service.endAll();
  expect(service.counts).toEqual({ streams: 0, buckets: 0 });
});
