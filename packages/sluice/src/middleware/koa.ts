/**
 * `sluice/koa`: rate limits before the middleware of Koa.
 *
 *   app.use(rateLimit({ limit: 100, window: "1m" }));
 *
 * The decision is in `ctx.state.rateLimit`. Errors are thrown, as Koa expects.
 */
import type { Context, Middleware } from "koa";
import { retryFields } from "../http/answer.js";
import { PROBLEM_CONTENT_TYPE, problemOf, refusalStatus } from "../http/problem.js";
import type { Decision } from "../limiter/decision.js";
import type { Limiter } from "../limiter/limiter.js";
import { koaAddress, nodeHops } from "./framework-address.js";
import { Gate, type RequestReader } from "./gate.js";
import type { GateOptions } from "./gate-options.js";

export type { CostSource, EndedResponse, SettleOption } from "./settle-option.js";

export interface RateLimitOptions extends GateOptions<Context> {
  /** Answers a refused request instead of the problem body; status, Retry-After and RateLimit fields are set already. */
  onRefused?: (ctx: Context, decision: Decision) => void | Promise<void>;
}

export type RateLimitMiddleware = Middleware & { readonly limiter: Limiter };

const reader: RequestReader<Context> = {
  raw: (ctx) => ctx.req,
  method: (ctx) => ctx.method,
  target: (ctx) => ctx.originalUrl,
  hops: (ctx) => nodeHops(ctx.req),
  address: koaAddress,
  legacyReset: "epoch",
  extraOptions: ["onRefused"],
};

export function rateLimit(options: RateLimitOptions): RateLimitMiddleware {
  const gate = new Gate(options, reader);
  const { onRefused } = options;

  const middleware: Middleware = async (ctx, next) => {
    const { decision, fields, left } = await gate.check(ctx);
    if (left) return;
    if (decision === undefined) return await next();
    ctx.state.rateLimit = decision;
    for (const [name, value] of fields) ctx.set(name, value);
    if (decision.allowed) {
      gate.holdUntilClose(decision, ctx, ctx.res);
      return await next();
    }
    ctx.status = refusalStatus(decision);
    for (const [name, value] of retryFields(decision)) ctx.set(name, value);
    if (onRefused !== undefined) return await onRefused(ctx, decision);
    ctx.set("Content-Type", PROBLEM_CONTENT_TYPE);
    ctx.body = JSON.stringify(problemOf(decision));
  };
  return Object.assign(middleware, { limiter: gate.limiter });
}
