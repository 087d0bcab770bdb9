/**
 * One Envoy's stream: its buckets, within bounds. In: reports. Out: actions for each bucket reported, and for those whose assignment needs
 * renewal.
 *
 * Bucket ids often contain client input. A bucket beyond the bounds is abandoned at once, an idle one after a while: until then Envoy keeps
 * every bucket and reports all of them in one message, which would outgrow the accepted size.
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
  domainBytes: 1_024,
  /** Over all streams. */
  buckets: 100_000,
};

/** A bucket without requests for this long is abandoned. */
const IDLE_MS = 60_000;
/** Settled and granted concurrently: a store batches them. */
const BATCH = 256;
/** An assignment delayed for longer is not sent: its TTL allows only a second for delivery. */
const LATEST_MS = 250;

export type StreamOutcome = QuotaOutcome | "failed" | "abandoned" | "refused";

interface QuotaStreamOptions extends Omit<QuotaBucketOptions, "id" | "attributes"> {
  readonly attributesOf: (domain: string, id: BucketId) => Attributes;
  /** Reserves a bucket in the service; false if there are too many and this stream, with `size` buckets, already has its share. */
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

  /** Throws `invalid-request` for a malformed report. */
  async report({ domain, bucketQuotaUsages }: UsageReports): Promise<void> {
    this.#mustBeOfDomain(domain);
    const refused: BucketAction[] = [];
    const usages = new Map<string, { id: BucketId; allowed: number; denied: number }>();
    const slice = new TimeSlice();
    for (const { bucketId, numRequestsAllowed, numRequestsDenied } of bucketQuotaUsages) {
      const entries = Object.keys(bucketId?.bucket ?? {}).length;
      if (bucketId == null || entries === 0)
        throw new SluiceError("invalid-request", "bucket_quota_usages.bucket_id: expected at least one key and value");
      // Refused before building its canonical form: sorting very many keys is slow.
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

  /** Renews buckets whose assignment ends before the next report. */
  async renewDue(): Promise<void> {
    const nowMonotonicMs = this.#options.now();
    const due = [...this.#buckets.values()].filter(({ bucket }) => bucket.dueMonotonicMs <= nowMonotonicMs);
    await this.#each(due, ({ bucket }) => bucket.renew());
  }

  /** Assigns all buckets anew, after a change of rules. */
  async renewAll(): Promise<void> {
    await this.#each([...this.#buckets.values()], ({ bucket }) => bucket.renew({ anew: true }));
  }

  close(): void {
    this.#isClosed = true;
    for (let i = 0; i < this.#buckets.size; i++) this.#options.giveBack();
    this.#buckets.clear();
  }

  /** In batches: units that wait for a later batch, or for a single slow answer, would reach Envoy too late. */
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

  /** Abandons all but the first `keep` buckets: a flood of ids comes after the legitimate buckets. */
  shed(keep: number): BucketAction[] {
    return [...this.#buckets.keys()].slice(keep).flatMap((key) => this.#abandon(key));
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
    for (const [key, { bucket }] of this.#buckets) {
      if (bucket.activeMonotonicMs <= idleSinceMonotonicMs) actions.push(...this.#abandon(key));
    }
    return actions;
  }

  #abandon(key: string): BucketAction[] {
    const { bucket, bytes } = this.#buckets.get(key)!;
    this.#buckets.delete(key);
    this.#idBytes -= bytes;
    this.#options.giveBack();
    this.#options.onOutcome("abandoned");
    return spellAction.abandon(bucket.id);
  }

  #mustBeOfDomain(domain: string): void {
    // Bounded, because the stream keeps it for its lifetime.
    const bytes = Buffer.byteLength(domain);
    if (bytes > bounds.domainBytes)
      throw new SluiceError(
        "invalid-request",
        `domain: expected at most ${bounds.domainBytes} bytes, got ${bytes} bytes`,
      );
    this.#domain ??= domain;
    if (this.#domain === "") throw new SluiceError("invalid-request", "domain: expected a name that is not empty");
    // Required only in the first report.
    if (domain !== "" && domain !== this.#domain)
      throw new SluiceError("invalid-request", "domain: expected that of the stream's first report");
  }
}
