/**
 * `--usage`: the proxy as a gateway to a language model API. A call's body is parsed for what it asks, the decision reserves an estimate,
 * the answer is parsed for its usage, and the reservation is settled at that.
 *
 *   read the body (bounded) -> attributes -> check -> forward, parsing the answer as it streams -> settle
 *
 * How a call ends:
 *   answered below 400              settled by the reported usage, else by the text that was seen
 *   the client disconnected         drained for a moment (`drain-answer.ts`), then settled by what was seen
 *   the upstream broke off          settled by what was seen
 *   timed out before an answer, or  settled by the prompt
 *   the client left before that
 *   answered 400 or above, or by    cancelled: no tokens
 *   this proxy itself
 *
 * Only a POST is a call: other answers may repeat the usage of a call already charged, or be a file written by a client.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Attributes } from "sluice";
import { ServiceError } from "../../../errors.js";
import { hasNoBody } from "../message-headers.js";
import { AnswerMeter } from "./answer-meter.js";
import { readingOf } from "./answer-reading.js";
import { beginsAsMultipart } from "./begins-as-multipart.js";
import { isReadAlike } from "./body-charset.js";
import { BodyHolder, type HeldBody } from "./body-holder.js";
import { estimates, settlement } from "./call-attributes.js";
import { isCompletion, isUpload, modelIn, modelName, runsInBackground, streamsAt } from "./call-path.js";
import { type CallFacts, CallReader } from "./call-reader.js";
import { AnswerDrain } from "./drain-answer.js";
import { MultipartCall } from "./multipart-call.js";
import type { Prices } from "./prices.js";
import { spliceBlocks, splicedBytes } from "./splice-blocks.js";
import type { Vendor } from "./vendors.js";

/** Counts a prompt's tokens with the user's own code; if it throws or returns nonsense, bytes are counted instead. */
export type CountTokens = (call: { model: string | undefined; body: Buffer }) => unknown;

interface GatewayOptions {
  readonly vendor: Vendor;
  readonly prices: Prices | undefined;
  readonly countTokens: CountTokens | undefined;
  readonly bodyLimitBytes: number;
  /** Whether to request usage in OpenAI streams if the client does not. */
  readonly asksForUsage: boolean;
  /** The upstream's rate limit headers describe the operator's account, and would contradict ours. */
  readonly hidesVendorFields: boolean;
  /** How long the answer to a client that has left is drained for its usage; 0: not at all. */
  readonly drainMs: number;
  /** Called once, at the end of each call that used anything. */
  readonly onUsed?: ((used: UsedByCall) => void) | undefined;
}

/** A call's usage, for counting per model. */
export interface UsedByCall {
  /** The entry in the price table if there is one; otherwise the name in the call. */
  readonly model: string | undefined;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly microdollars: number | undefined;
}

/** The body sent to the upstream. */
export interface CallBody {
  readonly bytes: number;
  blocks(): readonly Buffer[];
  /** Releases the bytes once they have been sent. */
  letGo(): void;
}

/** What the proxy does to the answer. */
interface AnswerPath {
  /** The streams it passes through, in order. */
  readonly through: readonly Duplex[];
  /** Header fields to withhold from the client; called with lower case. */
  readonly drop: (name: string) => boolean;
}

export interface LlmCall {
  /** Added to the request's attributes. */
  readonly attributes: Attributes;
  /** Absent: the client's body, if any, is forwarded unparsed. */
  readonly body: CallBody | undefined;
  answered(answer: IncomingMessage): AnswerPath;
  /** The client has disconnected. Resolves when the answer is no longer read; undefined if it is not drained. */
  readOn(): Promise<void> | undefined;
  readonly isReadOn: boolean;
  /**
   * The usage of a finished call. `isWhole`: its response was sent completely; `status`: of the response. Undefined: it used nothing.
   * Empty: its usage is unknown, and the reserved amount stands.
   */
  used(end: { isWhole: boolean; status?: number }): Attributes | undefined;
  /** Reports a finished call and its usage. */
  ended(used: Attributes): void;
}

export class LlmGateway {
  readonly vendor: Vendor;
  readonly #options: GatewayOptions;
  readonly #bodies: BodyHolder;
  readonly #drain: AnswerDrain;

  constructor(options: GatewayOptions) {
    this.vendor = options.vendor;
    this.#options = options;
    this.#bodies = new BodyHolder({ limitBytes: options.bodyLimitBytes });
    this.#drain = new AnswerDrain({ longestMs: options.drainMs });
  }

  /** Buffered bytes of request bodies, without the small ones. */
  get heldBytes(): number {
    return this.#bodies.heldBytes;
  }

  /** Undefined if the client disconnected. Rejects with a ServiceError for a refused body. */
  async read(client: IncomingMessage): Promise<LlmCall | undefined> {
    if (hasNoBody(client)) return this.#call(client);
    const target = client.url ?? "";
    const type = contentTypeOf(client);
    const isMultipart = /^ *multipart\//i.test(type);
    // Uploaded files contain no call.
    if (isMultipart && isUpload(target)) {
      const begins = await beginsAsMultipart(client);
      if (begins === false) refuse("body: expected its first boundary, because its content type is multipart");
      return begins ? this.#call(client) : undefined;
    }
    const coding = client.headers["content-encoding"];
    if (coding !== undefined && coding.toLowerCase() !== "identity")
      throw new ServiceError(
        "unsupported-media-type",
        `content-encoding: expected none, got ${JSON.stringify(coding)}`,
      );
    if (!isMultipart && !isReadAlike(type))
      throw new ServiceError("unsupported-media-type", "content-type: expected UTF-8, got another charset");
    const streams = streamsAt(target);
    const reader = isMultipart
      ? new MultipartCall(type)
      : new CallReader(this.vendor.boundsOf(target), { isStream: streams === "by-default" });
    const held = await this.#bodies.hold(client, (chunk) => {
      reader.push(chunk);
      refuse(reader.mistake);
    });
    if (held === undefined) return undefined;
    const read = reader.end();
    if (read === undefined) {
      held.letGo();
      return refuse(reader.mistake);
    }
    const facts = {
      ...read,
      model: modelIn(target) ?? (read.model === undefined ? undefined : modelName(read.model)),
      isStream: read.isStream || streams === "always",
      isBackground: read.isBackground && runsInBackground(target),
    };
    return this.#call(client, isMultipart ? facts : this.#counted(facts, held), held);
  }

  #call({ method, url = "" }: IncomingMessage, facts?: CallFacts, held?: HeldBody): LlmCall {
    const { vendor, prices, asksForUsage, hidesVendorFields, onUsed } = this.#options;
    const isAsked = asksForUsage && facts?.isStream === true && vendor.name === "openai" && isCompletion(url);
    const splice = isAsked ? facts.askForUsage : undefined;
    let answered: { answer: IncomingMessage; meter: AnswerMeter; status: number } | undefined;
    let isReadOn = false;
    let isDrained = false;
    return {
      attributes: facts === undefined ? {} : estimates(facts, prices),
      body: held && {
        bytes: splicedBytes(held.bytes, splice),
        blocks: () => spliceBlocks(held.blocks(), splice),
        letGo: held.letGo,
      },
      answered: (answer) => {
        const hides = (name: string): boolean => hidesVendorFields && isVendorField(name);
        if (!isCall(method)) return { through: [], drop: hides };
        const { kind, isMedia, decoding } = readingOf(answer, method);
        const meter = new AnswerMeter({ vendor, kind, isMedia, hidesUsage: splice !== undefined });
        answered = { answer, meter, status: answer.statusCode! };
        const changed = decoding === undefined ? (meter.hidesUsage ? otherLength : unchanged) : otherCoding;
        const drop = (name: string): boolean => changed.has(name) || hides(name);
        return { through: decoding === undefined ? [meter] : [decoding(), meter], drop };
      },
      readOn: () => {
        const drained = answered && answered.status < 400 ? this.#drain.drain(answered) : undefined;
        isReadOn = drained !== undefined;
        return drained?.then((isWhole) => {
          isReadOn = false;
          isDrained = isWhole;
        });
      },
      get isReadOn() {
        return isReadOn;
      },
      used({ isWhole, status }) {
        if (!isCall(method)) return undefined;
        if (answered === undefined) {
          if (isWhole && status !== SILENT) return undefined;
          return facts?.isBackground ? {} : settlement({ facts, prices });
        }
        if (answered.status >= 400) return undefined;
        const { reader } = answered.meter;
        if (facts?.isBackground && !reader.isReported) return {};
        return settlement({ facts, prices, usage: reader.usage({ isWhole: isWhole || isDrained }) });
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

/** The proxy timed out; the upstream has received the call. */
const SILENT = 504;

function isCall(method: string | undefined): boolean {
  return method === "POST";
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

/** Given two, one server reads the first, another the last: with another boundary, a form has other fields. */
function contentTypeOf({ headers, rawHeaders }: IncomingMessage): string {
  const given = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === "content-type");
  if (given.length > 1) refuse("content-type: expected one such header, got several");
  return headers["content-type"] ?? "";
}

function isVendorField(name: string): boolean {
  return name.startsWith("x-ratelimit-") || name.startsWith("anthropic-ratelimit-");
}

function refuse(mistake: string | undefined): undefined {
  if (mistake !== undefined) throw new ServiceError("invalid-call", mistake);
}
