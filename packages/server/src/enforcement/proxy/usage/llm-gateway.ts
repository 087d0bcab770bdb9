/**
 * `--usage`: the proxy in front of a server of language models. A call's body is read for what it asks, the decision holds an estimate,
 * the answer is read for what was used, and that is settled.
 *
 *   read the body (bounded) -> attributes -> check -> pass on, reading the answer as it streams -> settle
 *
 * How a call ends: answered below 400, settled by its usage, else by the text that was seen · the client or the upstream broke off, settled
 * by what was seen · answered 400 or above, or by this proxy itself, cancelled: no tokens.
 */
import type { IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import type { Attributes } from "sluice";
import { ServiceError } from "../../../errors.js";
import { hasNoBody } from "../message-headers.js";
import { AnswerMeter } from "./answer-meter.js";
import { readingOf } from "./answer-reading.js";
import { beginsAsMultipart } from "./begins-as-multipart.js";
import { BodyHolder, type HeldBody } from "./body-holder.js";
import { estimates, settlement } from "./call-attributes.js";
import { type CallFacts, CallReader } from "./call-reader.js";
import type { Prices } from "./prices.js";
import { spliceBlocks, splicedBytes } from "./splice-blocks.js";
import { isCompletion, type Vendor } from "./vendors.js";

/** A count of a prompt's tokens by the user's own code; throws or returns nonsense: the bytes are counted. */
export type CountTokens = (call: { model: string | undefined; body: Buffer }) => unknown;

interface GatewayOptions {
  readonly vendor: Vendor;
  readonly prices: Prices | undefined;
  readonly countTokens: CountTokens | undefined;
  readonly bodyLimitBytes: number;
  /** Whether to ask for usage in OpenAI's streams where the client does not. */
  readonly asksForUsage: boolean;
  /** The upstream's own rate limit fields tell of its operator's account; with fields of ours they would contradict each other. */
  readonly hidesVendorFields: boolean;
  /** Called once for each call that used anything, when it is over. */
  readonly onUsed?: ((used: UsedByCall) => void) | undefined;
}

/** What a call has used, for those who count by model. */
export interface UsedByCall {
  /** Of the price table, where there is one; else as the call named it. */
  readonly model: string | undefined;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly microdollars: number | undefined;
}

/** The body that the upstream gets. */
export interface CallBody {
  readonly bytes: number;
  blocks(): readonly Buffer[];
  /** The bytes were handed on. */
  letGo(): void;
}

/** The answer's way through the proxy. */
interface AnswerPath {
  /** The streams that it passes, in order. */
  readonly through: readonly Transform[];
  /** Header fields that do not reach the client; asked in lower case. */
  readonly drop: (name: string) => boolean;
}

export interface LlmCall {
  /** Of the request, beside the others. */
  readonly attributes: Attributes;
  /** Absent: the client's body passes unread, if there is one. */
  readonly body: CallBody | undefined;
  answered(answer: IncomingMessage): AnswerPath;
  /** What the call has used, once it is over. `isWhole`: its response was sent to the end. Undefined: nothing was used. */
  used(end: { isWhole: boolean }): Attributes | undefined;
  /** The call is over, and has used so much. */
  ended(used: Attributes): void;
}

export class LlmGateway {
  readonly vendor: Vendor;
  readonly #options: GatewayOptions;
  readonly #bodies: BodyHolder;

  constructor(options: GatewayOptions) {
    this.vendor = options.vendor;
    this.#options = options;
    this.#bodies = new BodyHolder({ limitBytes: options.bodyLimitBytes });
  }

  /** Bytes of bodies that are held, small ones aside. */
  get heldBytes(): number {
    return this.#bodies.heldBytes;
  }

  /** Undefined if the client went away. Rejects with a ServiceError for a body that is refused. */
  async read(client: IncomingMessage): Promise<LlmCall | undefined> {
    if (hasNoBody(client)) return this.#call(client);
    // Files that are uploaded hold no call.
    if (/^multipart\//i.test(client.headers["content-type"] ?? "")) {
      const isMultipart = await beginsAsMultipart(client);
      if (isMultipart === false) refuse("body: expected its first boundary, because its content type is multipart");
      return isMultipart ? this.#call(client) : undefined;
    }
    const coding = client.headers["content-encoding"];
    if (coding !== undefined && coding.toLowerCase() !== "identity")
      throw new ServiceError(
        "unsupported-media-type",
        `content-encoding: expected none, got ${JSON.stringify(coding)}`,
      );
    const reader = new CallReader(this.vendor.boundsOf(client.url ?? ""));
    const held = await this.#bodies.hold(client, (chunk) => {
      reader.push(chunk);
      refuse(reader.mistake);
    });
    if (held === undefined) return undefined;
    const facts = reader.end();
    if (facts !== undefined) return this.#call(client, this.#counted(facts, held), held);
    held.letGo();
    return refuse(reader.mistake);
  }

  #call({ method, url = "" }: IncomingMessage, facts?: CallFacts, held?: HeldBody): LlmCall {
    const { vendor, prices, asksForUsage, hidesVendorFields, onUsed } = this.#options;
    const isAsked = asksForUsage && facts?.isStream === true && vendor.name === "openai" && isCompletion(url);
    const splice = isAsked ? facts.askForUsage : undefined;
    let answered: { meter: AnswerMeter; status: number } | undefined;
    return {
      attributes: facts === undefined ? {} : estimates(facts, prices),
      body: held && {
        bytes: splicedBytes(held.bytes, splice),
        blocks: () => spliceBlocks(held.blocks(), splice),
        letGo: held.letGo,
      },
      answered(answer) {
        const { kind, decoding } = readingOf(answer, method);
        const meter = new AnswerMeter({ vendor, kind, hidesUsage: splice !== undefined });
        answered = { meter, status: answer.statusCode! };
        const changed = decoding === undefined ? (meter.hidesUsage ? otherLength : unchanged) : otherCoding;
        const drop = (name: string): boolean => changed.has(name) || (hidesVendorFields && isVendorField(name));
        return { through: decoding === undefined ? [meter] : [decoding(), meter], drop };
      },
      used({ isWhole }) {
        if (answered === undefined) return isWhole ? undefined : settlement({ facts, prices });
        if (answered.status >= 400) return undefined;
        return settlement({ facts, prices, usage: answered.meter.reader.usage({ isWhole }) });
      },
      ended: (used) => onUsed?.(usedByCall(facts, prices, used)),
    };
  }

  #counted(facts: CallFacts, held: HeldBody): CallFacts {
    const { countTokens } = this.#options;
    if (countTokens === undefined) return facts;
    const counted = countTokens({ model: facts.model, body: Buffer.concat([...held.blocks()]) });
    return Number.isSafeInteger(counted) && (counted as number) >= 0
      ? { ...facts, promptTokens: counted as number }
      : facts;
  }
}

const unchanged: ReadonlySet<string> = new Set();
const otherLength: ReadonlySet<string> = new Set(["content-length"]);
const otherCoding: ReadonlySet<string> = new Set(["content-length", "content-encoding"]);

function usedByCall(facts: CallFacts | undefined, prices: Prices | undefined, used: Attributes): UsedByCall {
  const { prompt_tokens, completion_tokens, cached_tokens, cost_microdollars } = used;
  return {
    model: prices === undefined ? facts?.model : prices.nameOf(facts?.model),
    promptTokens: Number(prompt_tokens ?? 0),
    completionTokens: Number(completion_tokens ?? 0),
    cachedTokens: Number(cached_tokens ?? 0),
    microdollars: cost_microdollars === undefined ? undefined : Number(cost_microdollars),
  };
}

function isVendorField(name: string): boolean {
  return name.startsWith("x-ratelimit-") || name.startsWith("anthropic-ratelimit-");
}

function refuse(mistake: string | undefined): undefined {
  if (mistake !== undefined) throw new ServiceError("invalid-call", mistake);
}
