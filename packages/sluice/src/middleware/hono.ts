/**
 * `sluice/hono`: rate limits before the handlers of Hono.
 *
 *   app.use(rateLimiter({ limit: 100, window: "1m" }));
 *
 * The decision is `c.get("rateLimit")`. On Node, the peer's address and the end of a response come from @hono/node-server; on other
 * runtimes `address` provides the peer (`(c) => getConnInfo(c).remote.address`), and a response ends when its body was read or dropped.
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

export type { CostSource, EndedResponse, SettleOption } from "./settle-option.js";

declare module "hono" {
  interface ContextVariableMap {
    /** The decision that let this request through, or refused it. */
    rateLimit: Decision;
  }
}

export interface RateLimiterOptions extends GateOptions<Context> {
  /**
   * Answers a refused request instead of the problem body. Retry-After and the RateLimit fields are added, and the status unless it has
   * one.
   */
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
  // Middleware may replace the request of a context, but not what it came from.
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
  // Hono has no proxy setting: no proxy is trusted unless the options name it.
  const gate = new Gate({ trustProxy: false, ...options }, reader);
  const { onRefused } = options;

  const middleware: MiddlewareHandler = async (c, next) => {
    const { decision, fields, left } = await gate.check(c);
    // Nobody reads it; 499 is how nginx logs a client that disconnected.
    if (left) return new Response(null, { status: 499 });
    if (decision === undefined) return await next();
    c.set("rateLimit", decision);
    if (!decision.allowed) {
      const made = onRefused === undefined ? problemResponse(decision) : await onRefused(c, decision);
      // 200 is the default status of a Response; any other was set on purpose.
      const status = made.status === 200 ? refusalStatus(decision) : made.status;
      const answer = new Response(made.body, { headers: made.headers, status });
      for (const [name, value] of [...fields, ...retryFields(decision)]) answer.headers.set(name, value);
      return answer;
    }
    const { outgoing } = nodeOf(c);
    if (outgoing !== undefined) gate.holdUntilClose(decision, c, outgoing);
    const onBody = outgoing === undefined ? bodyHold(gate, decision, c) : undefined;
    await next();
    // Not earlier: a handler that returns its own Response would lose what was set on the context. An inner limiter has already included
    // our decision in its fields.
    for (const [name, value] of fields) if (!c.res.headers.has(name)) c.header(name, value);
    if (onBody !== undefined) c.res = endWithBody(c.res, onBody);
  };
  return Object.assign(middleware, { limiter: gate.limiter });
}

function problemResponse(decision: Decision): Response {
  return new Response(JSON.stringify(problemOf(decision)), { headers: { "Content-Type": PROBLEM_CONTENT_TYPE } });
}

/** Handles a response's body as it passes, and its end. */
interface OnBody {
  readonly end: End;
  readonly push: (chunk: Uint8Array) => void;
  /** Ends the body early. */
  readonly stopped: AbortSignal;
}

function bodyHold(gate: Gate<Context>, decision: Decision, c: Context): OnBody | undefined {
  const stopping = new AbortController();
  const seen = gate.mustSettle(decision)
    ? gate.seenResponse((name) => c.res.headers.get(name) ?? undefined)
    : undefined;
  const settling = seen && { request: c, seen, stop: () => stopping.abort() };
  const end = gate.hold(decision, settling);
  return end && { end, push: (chunk) => seen?.reading.push(chunk), stopped: stopping.signal };
}

/** The same response, with callbacks for its body: read to its end, dropped by the client, or broken. */
function endWithBody(response: Response, { end, push, stopped }: OnBody): Response {
  const { status } = response;
  if (response.body === null) {
    end({ status, isWhole: true });
    return response;
  }
  const source = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        stopped.throwIfAborted();
        const { done, value } = await source.read();
        if (done) {
          end({ status, isWhole: true });
          controller.close();
          return;
        }
        push(value);
        controller.enqueue(value);
      } catch (error) {
        end({ status, isWhole: false });
        controller.error(error);
        await source.cancel(error).catch(() => undefined);
      }
    },
    async cancel(reason) {
      end({ status, isWhole: false });
      await source.cancel(reason);
    },
  });
  return new Response(body, response);
}
