/**
 * `sluice/hono`: rate limits before the handlers of Hono.
 *
 *   app.use(rateLimiter({ limit: 100, window: "1m" }));
 *
 * The decision is `c.get("rateLimit")`. On Node the peer's address and the end of a response come from @hono/node-server; on other
 * runtimes `address` tells the peer (`(c) => getConnInfo(c).remote.address`), and a response ends when its body was read or dropped.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Context, MiddlewareHandler } from "hono";
import { retryFields } from "../http/answer.js";
import { PROBLEM_CONTENT_TYPE, problemOf, refusalStatus } from "../http/problem.js";
import type { Decision } from "../limiter/decision.js";
import type { Limiter } from "../limiter/limiter.js";
import { nodeHops } from "./framework-address.js";
import { Gate, type RequestReader } from "./gate.js";
import type { GateOptions } from "./gate-options.js";
import type { End } from "./hold-until-end.js";

declare module "hono" {
  interface ContextVariableMap {
    /** The decision that let this request through, or refused it. */
    rateLimit: Decision;
  }
}

export interface RateLimiterOptions extends GateOptions<Context> {
  /** Answers a refused request instead of the problem body; Retry-After and RateLimit fields, and the status unless it has one, are added to it. */
  onRefused?: (c: Context, decision: Decision) => Response | Promise<Response>;
}

export type RateLimiterHandler = MiddlewareHandler & { readonly limiter: Limiter };

/** The environment that @hono/node-server provides. */
interface NodeBindings {
  readonly incoming?: IncomingMessage;
  readonly outgoing?: ServerResponse;
}

const nodeOf = (c: Context): NodeBindings => (c.env as NodeBindings | undefined) ?? {};

const reader: RequestReader<Context> = {
  // Middlewares may replace the request of a context, never what it came from.
  raw: (c) => nodeOf(c).incoming ?? c,
  method: (c) => c.req.method,
  target: (c) => c.req.url,
  hops: (c) => {
    const { incoming } = nodeOf(c);
    return incoming === undefined
      ? { peer: undefined, forwarded: c.req.header("x-forwarded-for") }
      : nodeHops(incoming);
  },
  address: (_c, hops) => hops.peer,
  legacyReset: "epoch",
  extraOptions: ["onRefused"],
};

export function rateLimiter(options: RateLimiterOptions): RateLimiterHandler {
  // Hono has no setting of its own for proxies: no proxy is trusted unless the options name it.
  const gate = new Gate({ trustProxy: false, ...options }, reader);
  const { onRefused } = options;

  const middleware: MiddlewareHandler = async (c, next) => {
    const { decision, fields, left } = await gate.check(c);
    // Nobody reads it; 499 is how nginx logs a client that went away.
    if (left) return new Response(null, { status: 499 });
    if (decision === undefined) return await next();
    c.set("rateLimit", decision);
    if (!decision.allowed) {
      const made = onRefused === undefined ? problemResponse(decision) : await onRefused(c, decision);
      // 200 is what a Response has by itself; any other status is meant.
      const status = made.status === 200 ? refusalStatus(decision) : made.status;
      const answer = new Response(made.body, { headers: made.headers, status });
      for (const [name, value] of [...fields, ...retryFields(decision)]) answer.headers.set(name, value);
      return answer;
    }
    const { outgoing } = nodeOf(c);
    if (outgoing !== undefined) gate.holdUntilClose(decision, outgoing);
    const end = outgoing === undefined ? gate.hold(decision) : undefined;
    await next();
    // Not before: a handler that returns a Response of its own would lose what was set on the context. A limiter further inside
    // has told of our decision together with its own.
    for (const [name, value] of fields) if (!c.res.headers.has(name)) c.header(name, value);
    if (end !== undefined) c.res = endWithBody(c.res, end);
  };
  return Object.assign(middleware, { limiter: gate.limiter });
}

function problemResponse(decision: Decision): Response {
  return new Response(JSON.stringify(problemOf(decision)), { headers: { "Content-Type": PROBLEM_CONTENT_TYPE } });
}

/** The same response, with a callback at its end: body read to its end, dropped by the client, or broken. */
function endWithBody(response: Response, end: End): Response {
  const failed = response.status >= 400;
  if (response.body === null) {
    end(failed);
    return response;
  }
  const source = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await source.read();
        if (!done) return controller.enqueue(value);
        end(failed);
        controller.close();
      } catch (error) {
        end(true);
        controller.error(error);
      }
    },
    async cancel(reason) {
      end(true);
      await source.cancel(reason);
    },
  });
  return new Response(body, response);
}
