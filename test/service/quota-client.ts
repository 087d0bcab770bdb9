/** A stream of Envoy's quota service, as an Envoy would open one: reports out, actions in. */
import { Client, type ClientDuplexStream, credentials, Metadata, type StatusObject } from "@grpc/grpc-js";
import { loadProto } from "../../packages/server/src/enforcement/envoy/load-proto.js";
import { QUOTA_PATH } from "../../packages/server/src/enforcement/envoy/quota/quota-messages.js";
import type { Json } from "./running-service.js";

const root = loadProto(["envoy/service/rate_limit_quota/v3/rlqs.proto"]);
const reports = root.lookupType("envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports");
const response = root.lookupType("envoy.service.rate_limit_quota.v3.RateLimitQuotaResponse");

export class QuotaClient {
  readonly #client: Client;

  constructor(address: string, channel = credentials.createInsecure()) {
    // Each has a connection of its own, as each Envoy has.
    this.#client = new Client(address, channel, { "grpc.use_local_subchannel_pool": 1 });
  }

  open(headers: Readonly<Record<string, string>> = {}): QuotaClientStream {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const same = (bytes: Buffer): Buffer => bytes;
    return new QuotaClientStream(this.#client.makeBidiStreamRequest(QUOTA_PATH, same, same, metadata));
  }

  close(): void {
    this.#client.close();
  }
}

export class QuotaClientStream {
  readonly call: ClientDuplexStream<Buffer, Buffer>;
  readonly ended: Promise<StatusObject>;
  readonly #received: Json[] = [];
  #wake = (): void => undefined;

  constructor(call: ClientDuplexStream<Buffer, Buffer>) {
    this.call = call;
    this.ended = new Promise((resolve) => call.once("status", resolve));
    call.on("error", () => undefined);
    call.on("data", (bytes: Buffer) => {
      this.#received.push(...(response.toObject(response.decode(bytes), { longs: Number }).bucketAction ?? []));
      this.#wake();
    });
  }

  report(buckets: readonly Readonly<Record<string, string>>[], usage: Json = {}, domain = "shop"): void {
    const bucketQuotaUsages = buckets.map((bucket) => ({ bucketId: { bucket }, ...usage }));
    this.call.write(reports.encode(reports.fromObject({ domain, bucketQuotaUsages })).finish() as Buffer);
  }

  /** The next so many actions. */
  async actions(count: number): Promise<Json[]> {
    while (this.#received.length < count) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#received.splice(0, count);
  }

  /** The units of the next assignment, which comes behind a DENY_ALL. */
  async units(): Promise<number> {
    const [, { quotaAssignmentAction }] = (await this.actions(2)) as [Json, Json];
    return quotaAssignmentAction.rateLimitStrategy.tokenBucket.maxTokens;
  }
}
