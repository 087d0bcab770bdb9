/**
 * `sluice/nest`: rate limits as a guard, on Nest over Express or Fastify.
 *
 *   imports: [RateLimitModule.forRoot({ limit: 100, window: "1m" })],
 *   providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }],
 *
 *   @RateLimit({ limit: 5, window: "1h" }) on a handler or a controller: its own limits, in place of the module's
 *   @SkipRateLimit()                      none
 *
 * A refusal is thrown as `RateLimitException` (429, or 503 in an outage), so that exception filters see it like any other.
 * Only HTTP is limited: handlers of messages and sockets pass.
 */
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
import { retryFields } from "../http/answer.js";
import { PROBLEM_CONTENT_TYPE, problemOf, refusalStatus } from "../http/problem.js";
import type { Decision } from "../limiter/make-decision.js";
import { expressAddress, fastifyAddress, nodeHops } from "./framework-address.js";
import { Gate, type RequestReader } from "./gate.js";
import { checkNames, type GateOptions, hasRules, routeOptions } from "./gate-options.js";

/** What is common to the requests of Express and Fastify. */
export interface NestRequest {
  readonly method: string;
  readonly originalUrl: string;
  readonly headers: IncomingMessage["headers"];
  /** The decision that let this request through, or refused it. */
  rateLimit?: Decision;
  readonly [more: string]: unknown;
}

export interface RateLimitOptions extends GateOptions<NestRequest> {
  /** Called for a refused request; may throw an exception of its own in place of `RateLimitException`. */
  onRefused?: (context: ExecutionContext, decision: Decision) => void | Promise<void>;
}

/** As Nest's other modules have it. */
export interface RateLimitAsyncOptions extends Pick<ModuleMetadata, "imports"> {
  inject?: (InjectionToken | OptionalFactoryDependency)[];
  useFactory: (...injected: never[]) => RateLimitOptions | Promise<RateLimitOptions>;
}

/** Where the module's options are found by injection. */
export const RATE_LIMIT_OPTIONS: unique symbol = Symbol("sluice.options");

const OWN_OPTIONS = "sluice:rate-limit";
const SKIPPED = "sluice:skip";

/** Limits of a handler, or of each handler of a controller, in place of the module's. */
export const RateLimit = (options: RateLimitOptions): ClassDecorator & MethodDecorator =>
  SetMetadata(OWN_OPTIONS, options);

/** No limits for a handler or a controller. `SkipRateLimit(false)` on a handler takes it back. */
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

/** `header` is what both `Response` of Express and `FastifyReply` have. */
interface NestResponse {
  header(name: string, value: string): unknown;
  readonly raw?: ServerResponse;
}

export class RateLimitGuard implements CanActivate, OnModuleDestroy {
  readonly #options: RateLimitOptions;
  readonly #reflector: Reflector;
  readonly #everywhere: Gate<NestRequest> | undefined;
  /** By the handler, for options of a controller make a counter for each of its handlers. */
  readonly #byHandler = new Map<unknown, Gate<NestRequest>>();

  constructor(options: RateLimitOptions, reflector: Reflector) {
    checkNames(options, reader.extraOptions);
    this.#options = options;
    this.#reflector = reflector;
    this.#everywhere = hasRules(options) ? new Gate(options, reader) : undefined;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== "http") return true;
    const targets = [context.getHandler(), context.getClass()];
    if (this.#reflector.getAllAndOverride<boolean | undefined>(SKIPPED, targets)) return true;
    const own = this.#reflector.getAllAndOverride<RateLimitOptions | undefined>(OWN_OPTIONS, targets);
    const gate = own === undefined ? this.#everywhere : this.#gateOf(own, context);
    if (gate === undefined) return true;

    const request = context.switchToHttp().getRequest<NestRequest>();
    const response = context.switchToHttp().getResponse<NestResponse>();
    const { decision, fields } = await gate.check(request);
    if (decision === undefined) return true;
    request.rateLimit = decision;
    for (const [name, value] of fields) response.header(name, value);
    if (decision.allowed) {
      gate.holdUntilClose(decision, response.raw ?? (response as unknown as ServerResponse));
      return true;
    }
    for (const [name, value] of retryFields(decision)) response.header(name, value);
    await (own?.onRefused ?? this.#options.onRefused)?.(context, decision);
    response.header("Content-Type", PROBLEM_CONTENT_TYPE);
    throw new RateLimitException(decision);
  }

  #gateOf(own: RateLimitOptions, context: ExecutionContext): Gate<NestRequest> {
    const handler = context.getHandler();
    let gate = this.#byHandler.get(handler);
    if (gate === undefined) {
      const name = `${context.getClass().name}.${handler.name}`
        .toLowerCase()
        .replaceAll(/[^a-z0-9.]+/g, "-")
        .slice(0, 64);
      gate = new Gate(routeOptions({ base: this.#options, own, limiter: this.#everywhere?.limiter, name }), reader);
      this.#byHandler.set(handler, gate);
    }
    return gate;
  }

  async onModuleDestroy(): Promise<void> {
    const gates = [...this.#byHandler.values(), ...(this.#everywhere === undefined ? [] : [this.#everywhere])];
    await Promise.all(gates.map((gate) => gate.close()));
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
  return {
    module: RateLimitModule,
    global: true,
    providers: [...options, RateLimitGuard],
    exports: [RATE_LIMIT_OPTIONS, RateLimitGuard],
  };
}

// Decorators by hand: the library is compiled without the compiler options that Nest's decorators need.
Inject(RATE_LIMIT_OPTIONS)(RateLimitGuard, undefined, 0);
Inject(Reflector)(RateLimitGuard, undefined, 1);
Injectable()(RateLimitGuard);
Module({})(RateLimitModule);
