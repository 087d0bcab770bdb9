/**
 * `sluice/nest`: rate limits as a guard, on Nest over Express or Fastify.
 *
 *   imports: [RateLimitModule.forRoot({ limit: 100, window: "1m" })],
 *   providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }],
 *
 *   @RateLimit({ limit: 5, window: "1h" }) on a handler or a controller: its own limits, instead of the module's
 *   @SkipRateLimit()                      none
 *
 * A refusal is thrown as `RateLimitException` (429, or 503 in an outage), so that exception filters handle it like any other. Limited are
 * HTTP, GraphQL (every resolver call) and WebSocket gateways (every message). Handlers of other transports pass, with a warning, unless a
 * guard that extends ours finds their request: `getRequestResponse`, as in @nestjs/throttler.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type CanActivate,
  type DynamicModule,
  type ExecutionContext,
  HttpException,
  Inject,
  Injectable,
  type InjectionToken,
  Module,
  type ModuleMetadata,
  type OnModuleDestroy,
  type OptionalFactoryDependency,
  SetMetadata,
} from "@nestjs/common";
import { Reflector } from "@nestjs/core";
import { SluiceError } from "../errors.js";
import { retryFields } from "../http/answer.js";
import { PROBLEM_CONTENT_TYPE, problemOf, refusalStatus } from "../http/problem.js";
import { warnOnce } from "../http/warn-once.js";
import type { Decision } from "../limiter/decision.js";
import { expressAddress, fastifyAddress, nodeHops } from "./framework-address.js";
import { Gate, type RequestReader } from "./gate.js";
import { checkOptions, type GateOptions, hasRules, routeOptions } from "./gate-options.js";

export type { CostSource, EndedResponse, SettleOption } from "./settle-option.js";

/** The fields that Express and Fastify requests share. */
export interface NestRequest {
  readonly method: string;
  readonly originalUrl: string;
  readonly headers: IncomingMessage["headers"];
  /** The decision that let this request through, or refused it. */
  rateLimit?: Decision;
  readonly [more: string]: unknown;
}

export interface RateLimitOptions extends GateOptions<NestRequest> {
  /** Called for a refused request. May answer it, or throw an exception instead of `RateLimitException`. */
  onRefused?: (context: ExecutionContext, decision: Decision) => void | Promise<void>;
}

/** The same shape as in Nest's other modules. */
export interface RateLimitAsyncOptions extends Pick<ModuleMetadata, "imports"> {
  inject?: (InjectionToken | OptionalFactoryDependency)[];
  useFactory: (...injected: never[]) => RateLimitOptions | Promise<RateLimitOptions>;
}

const RATE_LIMIT_OPTIONS = Symbol("sluice.options");

const OWN_OPTIONS = "sluice:rate-limit";
const SKIPPED = "sluice:skip";

/**
 * Limits of a handler, or of each handler of a controller, instead of the module's. `RateLimit({ rules: [short, long] })`: several, by
 * name.
 */
export const RateLimit = (options: RateLimitOptions): ClassDecorator & MethodDecorator =>
  SetMetadata(OWN_OPTIONS, options);

/** No limits for a handler or a controller. `SkipRateLimit(false)` on a handler reverts it. */
export const SkipRateLimit = (skip = true): ClassDecorator & MethodDecorator => SetMetadata(SKIPPED, skip);

export class RateLimitException extends HttpException {
  readonly decision: Decision;

  constructor(decision: Decision) {
    super(problemOf(decision), refusalStatus(decision));
    this.decision = decision;
  }
}

type FastifyRequestLike = Parameters<typeof fastifyAddress>[0];

const isFastify = (request: object): request is FastifyRequestLike => "raw" in request;
const rawOf = (request: NestRequest): IncomingMessage =>
  isFastify(request) ? request.raw : (request as unknown as IncomingMessage);

const reader: RequestReader<NestRequest> = {
  raw: rawOf,
  method: (request) => request.method,
  target: (request) => request.originalUrl,
  hops: (request) => nodeHops(rawOf(request)),
  address: (request, hops) =>
    isFastify(request)
      ? fastifyAddress(request, hops)
      : expressAddress(request as unknown as Parameters<typeof expressAddress>[0], hops),
  legacyReset: "delta",
  extraOptions: ["onRefused"],
};

/** The result of `getRequestResponse`, with the names that @nestjs/throttler uses. */
export interface RequestResponse {
  readonly req: NestRequest;
  readonly res: NestResponse;
}

const isGraphqlCall = (context: ExecutionContext): boolean => (context.getType() as string) === "graphql";

/**
 * The unit that is counted once: a request; in GraphQL, one resolver call (its `info`), because one request may name a field under a
 * hundred aliases; on a socket, one message, for which Nest makes the context.
 */
function callOf(context: ExecutionContext): object | undefined {
  if (isGraphqlCall(context)) return context.getArgByIndex<object>(3);
  return context.getType() === "ws" ? context.getArgs() : undefined;
}

/** The fields of a socket: of socket.io (`handshake`), or of ws, to which a gateway may add the request that opened it. */
interface SocketClient {
  readonly handshake?: { readonly headers: IncomingMessage["headers"]; readonly address: string; readonly url: string };
  readonly upgradeReq?: IncomingMessage;
  readonly _socket?: { readonly remoteAddress?: string };
}

/** A message has neither status nor header fields: the exception is the whole answer. */
const NO_RESPONSE: NestResponse = { header: () => undefined, status: () => undefined };

/** The request that opened the socket; `event` is the message's name, for `attributes`. */
function socketRequest(context: ExecutionContext): RequestResponse {
  const ws = context.switchToWs();
  const { handshake, upgradeReq, _socket } = ws.getClient<SocketClient>();
  const remoteAddress = handshake?.address ?? upgradeReq?.socket.remoteAddress ?? _socket?.remoteAddress;
  const req = {
    method: "GET",
    originalUrl: handshake?.url ?? upgradeReq?.url ?? "/",
    headers: handshake?.headers ?? upgradeReq?.headers ?? {},
    // A wait for a turn is not cut short: the socket emits nothing here.
    socket: { remoteAddress, once: () => undefined, off: () => undefined },
    app: { settings: {} },
    event: ws.getPattern(),
  };
  return { req, res: NO_RESPONSE };
}

interface GraphqlContext {
  readonly req?: NestRequest & { readonly res?: NestResponse };
  readonly request?: NestRequest;
  readonly res?: NestResponse;
  readonly reply?: NestResponse & { readonly request?: NestRequest };
}

/** Apollo on Express and Fastify, and Mercurius, put the request into the context of a resolver. */
function graphqlRequest(context: ExecutionContext): RequestResponse {
  const { req, request, res, reply }: GraphqlContext = context.getArgByIndex(2) ?? {};
  const foundRequest = req ?? request ?? reply?.request;
  const foundResponse = res ?? reply ?? req?.res;
  if (foundRequest?.headers === undefined || foundResponse === undefined) {
    throw new SluiceError(
      "invalid-setting",
      "RateLimitGuard: expected req and res in the context of GraphQL (context: ({ req, res }) => ({ req, res })), or a guard that overrides getRequestResponse",
    );
  }
  return { req: foundRequest, res: foundResponse };
}

/** The fields that Express's `Response` and `FastifyReply` share, and those that show whether it was sent. */
export interface NestResponse {
  header(name: string, value: string): unknown;
  status(code: number): unknown;
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  readonly raw?: ServerResponse;
}

/**
 * The gates of an application. Separate from the guard, because Nest makes one guard for every module that lists it in `@UseGuards`, and
 * all of them must count together.
 */
class RouteGates implements OnModuleDestroy {
  readonly #options: RateLimitOptions;
  readonly #everywhere: Gate<NestRequest> | undefined;
  /** By handler: the options of a controller make a counter for each of its handlers. */
  readonly #byHandler = new Map<unknown, Gate<NestRequest>>();

  constructor(options: RateLimitOptions) {
    checkOptions(options, reader.extraOptions);
    this.#options = options;
    this.#everywhere = hasRules(options) ? new Gate(options, reader) : undefined;
  }

  /** `own`: the options of the handler or its controller, if any. */
  gateOf(context: ExecutionContext, own: RateLimitOptions | undefined): Gate<NestRequest> | undefined {
    if (own === undefined) return this.#everywhere;
    const handler = context.getHandler();
    let gate = this.#byHandler.get(handler);
    if (gate === undefined) {
      const name = handlerName(context);
      gate = new Gate(routeOptions({ base: this.#options, own, limiter: this.#everywhere?.limiter, name }), reader);
      this.#byHandler.set(handler, gate);
    }
    return gate;
  }

  async refused(context: ExecutionContext, own: RateLimitOptions | undefined, decision: Decision): Promise<void> {
    await (own?.onRefused ?? this.#options.onRefused)?.(context, decision);
  }

  async onModuleDestroy(): Promise<void> {
    const gates = [...this.#byHandler.values(), ...(this.#everywhere === undefined ? [] : [this.#everywhere])];
    await Promise.all(gates.map((gate) => gate.close()));
  }
}

const LONGEST_ID = 64;

/** `CatsController.findAll` as a rule id. If it is too long, a hash distinguishes handlers whose names begin alike. */
function handlerName(context: ExecutionContext): string {
  const name = `${context.getClass().name}.${context.getHandler().name}`;
  const id = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/g, "-")
    .replace(/^[^a-z0-9]+/, "");
  if (id.length <= LONGEST_ID) return id;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 8);
  return `${id.slice(0, LONGEST_ID - hash.length - 1)}-${hash}`;
}

export class RateLimitGuard implements CanActivate {
  readonly #gates: RouteGates;
  readonly #reflector: Reflector;

  constructor(gates: RouteGates, reflector: Reflector) {
    this.#gates = gates;
    this.#reflector = reflector;
  }

  /**
   * Where to find the request and the response of a call; undefined for a call that is not limited. Override it if they are elsewhere: `{
   * const { req, res } = GqlExecutionContext.create(context).getContext(); return { req, res }; }`
   */
  protected getRequestResponse(context: ExecutionContext): RequestResponse | undefined {
    const type: string = context.getType();
    if (type === "http") {
      const http = context.switchToHttp();
      return { req: http.getRequest<NestRequest>(), res: http.getResponse<NestResponse>() };
    }
    if (type === "graphql") return graphqlRequest(context);
    if (type === "ws") return socketRequest(context);
    warnOnce(
      "SLUICE_UNLIMITED_CONTEXT",
      `RateLimitGuard does not limit calls of type "${type}". Extend it and override getRequestResponse, or leave it out there.`,
    );
    return undefined;
  }

  /** Calls that are not counted, in addition to those of `SkipRateLimit`. Meant to be overridden. */
  protected async shouldSkip(_context: ExecutionContext): Promise<boolean> {
    return false;
  }

  /** Ends a refused call by throwing. Override it to throw another exception, such as `WsException`. */
  protected async throwRefusal(_context: ExecutionContext, decision: Decision): Promise<never> {
    throw new RateLimitException(decision);
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const targets = [context.getHandler(), context.getClass()];
    if (this.#reflector.getAllAndOverride<boolean | undefined>(SKIPPED, targets)) return true;
    if (await this.shouldSkip(context)) return true;
    const own = this.#reflector.getAllAndOverride<RateLimitOptions | undefined>(OWN_OPTIONS, targets);
    const gate = this.#gates.gateOf(context, own);
    if (gate === undefined) return true;
    const found = this.getRequestResponse(context);
    if (found === undefined) return true;

    const { req: request, res: response } = found;
    const { decision, fields, left } = await gate.check(request, callOf(context));
    if (left) return false;
    if (decision === undefined) return true;
    request.rateLimit = decision;
    for (const [name, value] of fields) response.header(name, value);
    if (decision.allowed) {
      this.#hold(gate, decision, found);
      return true;
    }
    for (const [name, value] of retryFields(decision)) response.header(name, value);
    // A GraphQL response has one status for all its fields; refusals are in its errors.
    const isGraphql = isGraphqlCall(context);
    if (!isGraphql) response.status(refusalStatus(decision));
    await this.#gates.refused(context, own, decision);
    // If `onRefused` answered, the exception only ends the request: Nest sends no second answer.
    if (!isGraphql && !(response.headersSent ?? response.sent)) response.header("Content-Type", PROBLEM_CONTENT_TYPE);
    return await this.throwRefusal(context, decision);
  }

  /** A message of a socket has no response that ends: its places expire by their `ttl`, and the `estimate` stands. */
  #hold(gate: Gate<NestRequest>, decision: Decision, { req, res }: RequestResponse): void {
    if (res !== NO_RESPONSE) gate.holdUntilClose(decision, req, res.raw ?? (res as unknown as ServerResponse));
  }
}

// biome-ignore lint/complexity/noStaticOnlyClass: a dynamic module of Nest is a class with static makers.
export class RateLimitModule {
  static forRoot(options: RateLimitOptions): DynamicModule {
    return moduleOf([{ provide: RATE_LIMIT_OPTIONS, useValue: options }]);
  }

  static forRootAsync({ imports = [], inject = [], useFactory }: RateLimitAsyncOptions): DynamicModule {
    return { ...moduleOf([{ provide: RATE_LIMIT_OPTIONS, inject, useFactory }]), imports };
  }
}

function moduleOf(options: NonNullable<DynamicModule["providers"]>): DynamicModule {
  const gates = {
    provide: RouteGates,
    inject: [RATE_LIMIT_OPTIONS],
    useFactory: (given: RateLimitOptions) => new RouteGates(given),
  };
  return {
    module: RateLimitModule,
    global: true,
    providers: [...options, gates, RateLimitGuard],
    exports: [RouteGates, RateLimitGuard],
  };
}

// Decorators are applied by hand: the library is compiled without the compiler options that Nest's decorators need.
Inject(RouteGates)(RateLimitGuard, undefined, 0);
Inject(Reflector)(RateLimitGuard, undefined, 1);
Injectable()(RateLimitGuard);
Module({})(RateLimitModule);
