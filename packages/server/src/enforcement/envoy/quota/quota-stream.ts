/**
 * One stream of an Envoy: its buckets, within bounds. In: reports. Out: the actions for each, and for buckets that need another assignment.
 *
 * Bucket ids often hold what a client sent. A bucket beyond the bounds is abandoned at once, as an idle one is after a while: Envoy keeps
 * every bucket until then, and tells all of them in one message, which would outgrow what is accepted.
 */
import { type Attributes, SluiceError } from "sluice";
import { TimeSlice } from "sluice/internal";
import { type Assigned, QuotaBucket, type QuotaBucketOptions, type QuotaOutcome } from "./quota-bucket.js";
import {
  type BucketAction,
  type BucketId,
  countOf,
  spellAction,
  spellBucketId,
  type UsageReports,
} from "./quota-messages.js";

export const bounds = {
  bucketsPerStream: 4_096,
  idBytesPerStream: 512 * 1_024,
  idBytes: 8 * 1_024,
  idEntries: 64,
  /** Of all streams. */
  buckets: 100_000,
};

/** A bucket without a request for so long is abandoned. */
const IDLE_MS = 60_000;
/** Settled and granted at once: a store answers many together. */
const BATCH = 256;

export type StreamOutcome = QuotaOutcome | "failed" | "abandoned" | "refused";

interface QuotaStreamOptions extends Omit<QuotaBucketOptions, "id" | "attributes"> {
  readonly attributesOf: (domain: string, id: BucketId) => Attributes;
  /** Counts a bucket of this service; false if there are too many. */
  readonly take: () => boolean;
  readonly giveBack: () => void;
  readonly onOutcome: (outcome: StreamOutcome) => void;
  readonly onUnfit: (rule: string) => void;
  readonly onFailure: (error: unknown) => void;
}

interface Tracked {
  readonly bucket: QuotaBucket;
  readonly bytes: number;
}

export class QuotaStream {
  readonly #options: QuotaStreamOptions;
  readonly #buckets = new Map<string, Tracked>();
  #idBytes = 0;
  #domain: string | undefined;

  constructor(options: QuotaStreamOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Throws `invalid-request` for what is no report. */
  async report({ domain, bucketQuotaUsages }: UsageReports): Promise<BucketAction[]> {
    this.#mustBeOfDomain(domain);
    const usages = new Map<string, { id: BucketId; allowed: number; denied: number }>();
    const slice = new TimeSlice();
    for (const { bucketId, numRequestsAllowed, numRequestsDenied } of bucketQuotaUsages) {
      if (bucketId == null || Object.keys(bucketId.bucket).length === 0)
        throw new SluiceError("invalid-request", "bucket_quota_usages.bucket_id: expected at least one key and value");
      const key = spellBucketId(bucketId);
      const sum = usages.get(key) ?? { id: bucketId, allowed: 0, denied: 0 };
      sum.allowed += countOf(numRequestsAllowed);
      sum.denied += countOf(numRequestsDenied);
      usages.set(key, sum);
      if (slice.isOver()) await slice.next();
    }
    const actions: BucketAction[] = [];
    const due: { bucket: QuotaBucket; allowed: number; denied: number }[] = [];
    for (const [key, { id, ...usage }] of usages) {
      const bucket = this.#buckets.get(key)?.bucket ?? this.#open(key, id);
      if (bucket === undefined) actions.push(...spellAction.abandon(id));
      else due.push({ bucket, ...usage });
    }
    const reported = await this.#each(due, ({ bucket, ...usage }) => bucket.report(usage));
    return [...actions, ...reported, ...this.#abandonIdle()];
  }

  /** Buckets whose assignment ends before the next report. */
  async renewDue(): Promise<BucketAction[]> {
    const nowMonotonicMs = this.#options.now();
    const due = [...this.#buckets.values()].filter(({ bucket }) => bucket.dueMonotonicMs <= nowMonotonicMs);
    return await this.#each(due, ({ bucket }) => bucket.renew());
  }

  /** The rules have changed. */
  async renewAll(): Promise<BucketAction[]> {
    return await this.#each([...this.#buckets.values()], ({ bucket }) => bucket.renew({ anew: true }));
  }

  /** The actions that were returned last were not sent. */
  unsent(): void {
    for (const { bucket } of this.#buckets.values()) bucket.unsent();
  }

  close(): void {
    for (let i = 0; i < this.#buckets.size; i++) this.#options.giveBack();
    this.#buckets.clear();
  }

  async #each<T>(due: readonly T[], work: (one: T) => Promise<Assigned>): Promise<BucketAction[]> {
    const { onOutcome, onUnfit, onFailure } = this.#options;
    const failed = (error: unknown): undefined => void onFailure(error);
    const actions: BucketAction[] = [];
    const slice = new TimeSlice();
    for (let i = 0; i < due.length; i += BATCH) {
      const batch = due.slice(i, i + BATCH).map((one) => work(one).catch(failed));
      for (const assigned of await Promise.all(batch)) {
        onOutcome(assigned?.outcome ?? "failed");
        if (assigned?.unfit !== undefined) onUnfit(assigned.unfit);
        if (assigned !== undefined) actions.push(...assigned.actions);
      }
      if (slice.isOver()) await slice.next();
    }
    return actions;
  }

  #open(key: string, id: BucketId): QuotaBucket | undefined {
    const { attributesOf, take, onOutcome } = this.#options;
    const bytes = Buffer.byteLength(key);
    const fits =
      bytes <= bounds.idBytes &&
      Object.keys(id.bucket).length <= bounds.idEntries &&
      this.#buckets.size < bounds.bucketsPerStream &&
      this.#idBytes + bytes <= bounds.idBytesPerStream &&
      take();
    if (!fits) {
      onOutcome("refused");
      return undefined;
    }
    const bucket = new QuotaBucket({ ...this.#options, id, attributes: attributesOf(this.#domain!, id) });
    this.#buckets.set(key, { bucket, bytes });
    this.#idBytes += bytes;
    return bucket;
  }

  #abandonIdle(): BucketAction[] {
    const idleSinceMonotonicMs = this.#options.now() - IDLE_MS;
    const actions: BucketAction[] = [];
    for (const [key, { bucket, bytes }] of this.#buckets) {
      if (bucket.activeMonotonicMs > idleSinceMonotonicMs) continue;
      this.#buckets.delete(key);
      this.#idBytes -= bytes;
      this.#options.giveBack();
      this.#options.onOutcome("abandoned");
      actions.push(...spellAction.abandon(bucket.id));
    }
    return actions;
  }

  #mustBeOfDomain(domain: string): void {
    this.#domain ??= domain;
    if (this.#domain === "") throw new SluiceError("invalid-request", "domain: expected a name that is not empty");
    // Only the first report must have it.
    if (domain !== "" && domain !== this.#domain)
      throw new SluiceError("invalid-request", "domain: expected that of the stream's first report");
  }
}
