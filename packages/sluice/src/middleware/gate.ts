/**
 * The gate that every middleware puts before its handlers: request -> attributes -> limiter -> what to send. In: a framework's request,
 * through a reader. Out: the decision and the fields of the response. Nothing is sent here: the adapter decides how to answer, and where
 * errors go.
 *
 * A gate counts a request once, however many routers pass it by; a limiter shared by several gates counts it once as long as they ask the
 * same. Decisions of different limiters on one request share one set of fields.
 */
import type { ServerResponse } from "node:http";
import { addressNormaliser, clientAddresses, type Hops } from "../http/client-address.js";
import { type Field, type LegacyReset, rateLimitFields } from "../http/rate-limit-fields.js";
import { requestPath, unresolvedPath } from "../http/request-path.js";
import type { AcquireOptions, CheckOptions } from "../limiter/check-request.js";
import { ClientLeft } from "../limiter/client-left.js";
import type { Decision } from "../limiter/decision.js";
import type { Limiter } from "../limiter/limiter.js";
import type { Attributes } from "../rules/rule.js";
import { AbsentKeys } from "./absent-keys.js";
import { checkOptions, type GateOptions, limiterOf } from "./gate-options.js";
import { type Aftermath, type End, endWithResponse, holdUntilEnd, type Settling } from "./hold-until-end.js";
import type { LimitsByRequest } from "./limits-by-request.js";
import { ResponseReading } from "./response-reading.js";
import { bodyPaths, checkSettle, readsBody, type SeenResponse } from "./settle-option.js";
import { type HeaderOf, watchBody, watchHead } from "./watch-response.js";

/** How a framework's request is read. */
export interface RequestReader<Request> {
  /** The object that represents the request in every middleware that it passes. */
  raw(request: Request): object;
  method(request: Request): string;
  /** The whole request target, not shortened by mounted routers. */
  target(request: Request): string;
  hops(request: Request): Hops;
  /** The client's address according to the framework's own setting of trusted proxies; used unless `trustProxy` is given. */
  address(request: Request, hops: Hops): string | undefined;
  readonly legacyReset: LegacyReset;
  /** Options that only this adapter has. */
  readonly extraOptions: readonly string[];
}

/** The outcome of a request at the gate. */
export interface Passage {
  /** Absent for a request that was skipped or counted before: let it through. */
  readonly decision: Decision | undefined;
  readonly fields: readonly Field[];
  /** The client disconnected while its request waited for a turn: there is nobody to answer. */
  readonly left?: true;
}

/** A request's visit to a limiter: what was asked, and the decision. */
interface Meeting {
  readonly gate: unknown;
  readonly limiter: Limiter;
  readonly attributes: Attributes;
  readonly cost: number | undefined;
  decision: Decision | undefined;
}

const UNCOUNTED: Passage = { decision: undefined, fields: [] };
const LEFT: Passage = { decision: undefined, fields: [], left: true };
const NO_OPTIONS: CheckOptions = {};
/**
 * In a WeakMap rather than on the request: Express changes the prototype of its requests, after which a new property costs microseconds.
 */
const meetings = new WeakMap<object, Meeting[]>();

export class Gate<Request> {
  readonly limiter: Limiter;
  readonly #owned: boolean;
  readonly #limits: LimitsByRequest<Request> | undefined;
  readonly #options: GateOptions<Request>;
  readonly #reader: RequestReader<Request>;
  readonly #fieldsOf: (decisions: readonly Decision[]) => readonly Field[];
  readonly #addressOf: (request: Request) => string;
  readonly #aftermath: Aftermath<Request>;
  /** Whether a request needs none of the user's functions. */
  readonly #plain: boolean;
  readonly #fixedCost: CheckOptions;
  readonly #secondReading = new WeakMap<Decision, Decision>();
  readonly #absentKeys: AbsentKeys;

  constructor(options: GateOptions<Request>, reader: RequestReader<Request>) {
    checkOptions(options, reader.extraOptions);
    checkSettle(options.settle);
    const { limiter, owned, limits } = limiterOf(options);
    this.limiter = limiter;
    this.#owned = owned;
    this.#limits = limits;
    this.#options = options;
    this.#reader = reader;
    this.#fieldsOf = rateLimitFields(options.headers, reader.legacyReset);
    this.#addressOf = addressReader(options, reader);
    this.#aftermath = {
      limiter,
      skipSuccessful: options.skipSuccessful === true,
      skipFailed: options.skipFailed === true,
      settle: options.settle,
    };
    const { skip, attributes, cost } = options;
    this.#plain = !skip && !attributes && !limits && typeof cost !== "function";
    this.#fixedCost = typeof cost === "number" ? { cost } : NO_OPTIONS;
    this.#absentKeys = new AbsentKeys(limiter);
  }

  /**
   * `call`: the unit that is counted once, if not the whole request. Rejects only for mistakes: user functions that throw, invalid
   * attributes or costs, a closed limiter.
   */
  check(request: Request, call?: object): Promise<Passage> {
    const raw = call ?? this.#reader.raw(request);
    const met = meetings.get(raw);
    if (met?.some(({ gate }) => gate === this)) return Promise.resolve(UNCOUNTED);
    if (!this.#plain) return this.#prepare(request, raw);
    return this.#ask(request, raw, { attributes: this.#attributesOf(request), options: this.#fixedCost });
  }

  async #prepare(request: Request, raw: object): Promise<Passage> {
    const { skip, attributes, cost } = this.#options;
    if (skip !== undefined && (await skip(request))) return UNCOUNTED;
    const known = this.#attributesOf(request);
    const asked = { ...known, ...(await attributes?.(request)), ...(await this.#limits?.attributesOf(request)) };
    const options = typeof cost === "function" ? { cost: await cost(request) } : this.#fixedCost;
    return await this.#ask(request, raw, { attributes: asked, options });
  }

  #attributesOf(request: Request): Attributes {
    const reader = this.#reader;
    return {
      ip: this.#addressOf(request),
      method: reader.method(request),
      path: requestPath(reader.target(request), this.#options.paths),
    };
  }

  #ask(
    request: Request,
    raw: object,
    { attributes, options }: { attributes: Attributes; options: CheckOptions },
  ): Promise<Passage> {
    const { limiter } = this;
    this.#absentKeys.saw(attributes);
    const meeting: Meeting = { gate: this, limiter, attributes, cost: options.cost, decision: undefined };
    const met = meetings.get(raw);
    if (met === undefined) meetings.set(raw, [meeting]);
    else if (met.some((earlier) => asksTheSame(earlier, meeting))) return Promise.resolve(UNCOUNTED);
    else met.push(meeting);
    const path = unresolvedPath(this.#reader.target(request), this.#options.paths);
    const client = new ClientLeft(this.#reader.raw(request));
    const asked: AcquireOptions = { ...options, signal: client.signal };
    const decided =
      path === undefined
        ? limiter.acquire(attributes, asked)
        : this.#acquireBoth([attributes, { ...attributes, path }], asked);
    return decided.then(
      (decision) => {
        client.forget();
        meeting.decision = decision;
        return { decision, fields: this.#fieldsOf(met === undefined ? [decision] : decisionsOf(met)) };
      },
      (error) => {
        client.forget();
        if (client.isSo) return LEFT;
        throw error;
      },
    );
  }

  /** For a target with `..`, which routers read in two ways: both readings must pass, and both are held. */
  async #acquireBoth(
    [resolved, unresolved]: readonly [Attributes, Attributes],
    options: AcquireOptions,
  ): Promise<Decision> {
    const first = await this.limiter.acquire(resolved, options);
    if (!first.allowed) return first;
    const giveUp = (): Promise<unknown> => Promise.all([this.limiter.refund(first), first.lease?.release()]);
    let second: Decision;
    try {
      second = await this.limiter.acquire(unresolved, options);
    } catch (error) {
      await giveUp();
      throw error;
    }
    if (second.allowed) {
      this.#secondReading.set(first, second);
      return first;
    }
    await giveUp();
    return second;
  }

  /** Returns what to call when the response has ended; undefined if nothing is left to do then. `settling`: required if `mustSettle`. */
  hold(decision: Decision, settling?: Settling<Request>): End | undefined {
    const end = holdUntilEnd(decision, this.#aftermath, settling);
    const second = this.#secondReading.get(decision);
    const secondEnd = second === undefined ? undefined : holdUntilEnd(second, this.#aftermath, settling);
    if (secondEnd === undefined) return end;
    return (ended) => {
      end?.(ended);
      secondEnd(ended);
    };
  }

  /** Whether the response must be read to find its cost. */
  mustSettle(decision: Decision): boolean {
    const isHeld = decision.reservation ?? this.#secondReading.get(decision)?.reservation;
    return isHeld !== undefined && this.#options.settle !== undefined;
  }

  /** Reads the cost from a response, as far as it is seen; push its bytes to `reading`. */
  seenResponse(headerOf: HeaderOf): SeenResponse {
    return { headerOf, reading: new ResponseReading({ paths: bodyPaths(this.#options.settle ?? {}), headerOf }) };
  }

  /** The same as `hold`, if Node signals the end. */
  holdUntilClose(decision: Decision, request: Request, response: ServerResponse): void {
    const settling = this.mustSettle(decision) ? this.#watch(request, response) : undefined;
    const end = this.hold(decision, settling);
    if (end !== undefined) endWithResponse(end, response);
  }

  #watch(request: Request, response: ServerResponse): Settling<Request> {
    const seen = this.seenResponse(watchHead(response));
    // The body of a response to HEAD is never sent.
    const hasBody = this.#reader.method(request) !== "HEAD" && readsBody(this.#options.settle ?? {});
    if (hasBody) watchBody(response, (chunk) => seen.reading.push(chunk));
    return { request, seen, stop: () => response.destroy() };
  }

  /** Closes the limiter if it was made here. */
  async close(): Promise<void> {
    if (this.#owned) await this.limiter.close();
  }
}

function addressReader<Request>(
  { trustProxy, ipv6Prefix, address }: GateOptions<Request>,
  reader: RequestReader<Request>,
): (request: Request) => string {
  const hopsOf = (request: Request): Hops =>
    address === undefined ? reader.hops(request) : { ...reader.hops(request), peer: address(request) };
  if (trustProxy !== undefined) {
    const read = clientAddresses({ trustProxy, ...(ipv6Prefix !== undefined && { ipv6Prefix }) });
    return (request) => read(hopsOf(request));
  }
  const normalise = addressNormaliser(ipv6Prefix);
  if (address !== undefined) return (request) => normalise(address(request));
  return (request) => normalise(reader.address(request, reader.hops(request)));
}

function asksTheSame(a: Meeting, b: Meeting): boolean {
  if (a.limiter !== b.limiter || a.cost !== b.cost) return false;
  const names = Object.keys(a.attributes);
  if (names.length !== Object.keys(b.attributes).length) return false;
  return names.every((name) => a.attributes[name] === b.attributes[name]);
}

function decisionsOf(met: readonly Meeting[]): Decision[] {
  return met.flatMap(({ decision }) => decision ?? []);
}
