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
/** An assignment that waited longer is not sent: its time to live allows a second for the way. */
const LATEST_MS = 250;

export type StreamOutcome = QuotaOutcome | "failed" | "abandoned" | "refused";

interface QuotaStreamOptions extends Omit<QuotaBucketOptions, "id" | "attributes"> {
  readonly attributesOf: (domain: string, id: BucketId) => Attributes;
  /** Counts a bucket of this service; false if there are too many, and this stream has its share of `size` already. */
  readonly take: (size: number) => boolean;
  /** Sends actions; false if they cannot be sent soon. */
  readonly send: (actions: readonly BucketAction[]) => Promise<boolean>;
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
  #isClosed = false;
  #domain: string | undefined;

  constructor(options: QuotaStreamOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Throws `invalid-request` for what is no report. */
  async report({ domain, bucketQuotaUsages }: UsageReports): Promise<void> {
    this.#mustBeOfDomain(domain);
    const refused: BucketAction[] = [];
    const usages = new Map<string, { id: BucketId; allowed: number; denied: number }>();
    const slice = new TimeSlice();
    for (const { bucketId, numRequestsAllowed, numRequestsDenied } of bucketQuotaUsages) {
      const entries = Object.keys(bucketId?.bucket ?? {}).length;
      if (bucketId == null || entries === 0)
        throw new SluiceError("invalid-request", "bucket_quota_usages.bucket_id: expected at least one key and value");
      // Not even spelled: to sort very many keys takes long.
      if (entries > bounds.idEntries) {
        refused.push(...this.#refuse(bucketId));
        continue;
      }
      const key = spellBucketId(bucketId);
      const sum = usages.get(key) ?? { id: bucketId, allowed: 0, denied: 0 };
      sum.allowed += countOf(numRequestsAllowed);
      sum.denied += countOf(numRequestsDenied);
      usages.set(key, sum);
      if (slice.isOver()) await slice.next();
    }
    const due: { bucket: QuotaBucket; allowed: number; denied: number }[] = [];
    for (const [key, { id, ...usage }] of usages) {
      const bucket = this.#buckets.get(key)?.bucket ?? this.#open(key, id);
      if (bucket === undefined) refused.push(...this.#refuse(id));
      else due.push({ bucket, ...usage });
    }
    await this.#options.send(refused);
    await this.#each(due, ({ bucket, ...usage }) => bucket.report(usage));
    await this.#options.send(this.#abandonIdle());
  }

  /** Buckets whose assignment ends before the next report. */
  async renewDue(): Promise<void> {
    const nowMonotonicMs = this.#options.now();
    const due = [...this.#buckets.values()].filter(({ bucket }) => bucket.dueMonotonicMs <= nowMonotonicMs);
    await this.#each(due, ({ bucket }) => bucket.renew());
  }

  /** The rules have changed. */
  async renewAll(): Promise<void> {
    await this.#each([...this.#buckets.values()], ({ bucket }) => bucket.renew({ anew: true }));
  }

  close(): void {
    this.#isClosed = true;
    for (let i = 0; i < this.#buckets.size; i++) this.#options.giveBack();
    this.#buckets.clear();
  }

  /** Batch by batch: units that wait for a later batch, or for one slow answer, would reach Envoy late. */
  async #each<T extends { bucket: QuotaBucket }>(
    due: readonly T[],
    work: (one: T) => Promise<Assigned>,
  ): Promise<void> {
    const { onOutcome, onUnfit, onFailure, now, send } = this.#options;
    const slice = new TimeSlice();
    for (let i = 0; i < due.length && !this.#isClosed; i += BATCH) {
      const fresh: { bucket: QuotaBucket; actions: readonly BucketAction[] }[] = [];
      const batch = due.slice(i, i + BATCH).map(async (one) => {
        const assigned = await work(one).catch((error: unknown) => void onFailure(error));
        return { ...one, assigned, madeMonotonicMs: now() };
      });
      for (const { bucket, assigned, madeMonotonicMs } of await Promise.all(batch)) {
        onOutcome(assigned?.outcome ?? "failed");
        if (assigned?.unfit !== undefined) onUnfit(assigned.unfit);
        if (assigned === undefined || assigned.actions.length === 0) continue;
        if (now() - madeMonotonicMs <= LATEST_MS) fresh.push({ bucket, actions: assigned.actions });
        else bucket.unsent();
      }
      if (!(await send(fresh.flatMap(({ actions }) => actions)))) for (const { bucket } of fresh) bucket.unsent();
      if (slice.isOver()) await slice.next();
    }
  }

  #refuse(id: BucketId): BucketAction[] {
    this.#options.onOutcome("refused");
    return spellAction.abandon(id);
  }

  #open(key: string, id: BucketId): QuotaBucket | undefined {
    const { attributesOf, take } = this.#options;
    const bytes = Buffer.byteLength(key);
    const fits =
      !this.#isClosed &&
      bytes <= bounds.idBytes &&
      this.#buckets.size < bounds.bucketsPerStream &&
      this.#idBytes + bytes <= bounds.idBytesPerStream &&
      take(this.#buckets.size);
    if (!fits) return undefined;
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
