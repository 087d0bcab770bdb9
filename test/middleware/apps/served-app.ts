/**
 * One small application, built once with each framework, behind the middleware under test. Every one of them serves
 *   /              "ok"
 *   /stream        a first part, and the rest when the test says so (`Stage.finish`)
 *   /break         a first part, and then the handler fails
 *   /fail          an error before anything is sent
 *   /told          JSON that tells a cost of 12 and a field `x-cost` that tells 7
 *   /events        server-sent events: a cost of 5, and, when the test says so, of 9
 *   /absent        404
 *   /nested/leaf   "ok", behind a second mount of the same limits
 */

import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Attributes, Decision, Limiter, Rule, Store } from "sluice";
import type { SettleOption } from "sluice/express";
import type { HeadersOption, TrustedProxies } from "sluice/http";

/** What the test tells handlers, and hears from them. */
export class Stage {
  /** The decisions that handlers saw on their requests. */
  readonly decisions: (Decision | null | undefined)[] = [];
  #finish: () => void = () => {};
  readonly #finished = new Promise<void>((resolve) => {
    this.#finish = resolve;
  });

  /** Lets `/stream` end. */
  finish(): void {
    this.#finish();
  }

  waitForFinish(): Promise<void> {
    return this.#finished;
  }

  async *parts(): AsyncGenerator<string> {
    yield "first ";
    await this.#finished;
    yield "last";
  }

  async *events(): AsyncGenerator<string> {
    yield 'data: {"usage":{"total":5}}\n\n';
    await this.#finished;
    yield 'data: {"usage":{"total":9}}\n\n';
  }

  async *brokenParts(): AsyncGenerator<string> {
    yield "first ";
    throw new Error("the handler broke");
  }
}

export const TOLD = { text: "twelve", usage: { total: 12 } };
export const COST_FIELD = ["x-cost", "7"] as const;
export const EVENTS = "text/event-stream";

/** Reads a request header, whatever the framework. */
export type HeaderOf = (name: string) => string | undefined;

/** The options that all middlewares share, with requests reduced to their headers. */
export interface CommonOptions {
  limiter?: Limiter;
  rules?: readonly Rule[];
  limit?: number;
  window?: string;
  store?: Store;
  headers?: HeadersOption;
  attributes?: (header: HeaderOf) => Attributes | Promise<Attributes>;
  skip?: (header: HeaderOf) => boolean;
  cost?: number | ((header: HeaderOf) => number);
  skipSuccessful?: boolean;
  skipFailed?: boolean;
  settle?: SettleOption<unknown>;
  trustProxy?: TrustedProxies;
  /** Answers "refused by hand" where true. */
  ownRefusal?: boolean;
}

export interface ServedApp extends AsyncDisposable {
  readonly url: string;
  readonly stage: Stage;
}

export interface Framework {
  readonly name: string;
  /** Whether `X-RateLimit-Reset` counts from now, as this framework's users know it. */
  readonly legacyReset: "epoch" | "delta";
  serve(options: CommonOptions): Promise<ServedApp>;
}

/** Common options with the functions that take this framework's request. */
export function adapted<Request>(options: CommonOptions, headerOf: (request: Request) => HeaderOf) {
  const { attributes, skip, cost, ownRefusal: _, ...rest } = options;
  return {
    ...rest,
    ...(attributes && { attributes: (request: Request) => attributes(headerOf(request)) }),
    ...(skip && { skip: (request: Request) => skip(headerOf(request)) }),
    ...(cost !== undefined && {
      cost: typeof cost === "number" ? cost : (request: Request) => cost(headerOf(request)),
    }),
  };
}

export function listening(server: Server, stage: Stage): Promise<ServedApp> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      resolve({ url: `http://127.0.0.1:${port}`, stage, [Symbol.asyncDispose]: () => closed(server) });
    });
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
