/**
 * `sluice/express`: rate limits before the handlers of Express 4 and 5.
 *
 *   app.use(rateLimit({ limit: 100, window: "1m" }));
 *
 * The decision is in `res.locals.rateLimit`. A refused request is answered here and goes no further; errors go to `next`.
 */
import type { NextFunction, Request, Response } from "express";
import { retryFields } from "../http/answer.js";
import { PROBLEM_CONTENT_TYPE, problemOf, refusalStatus } from "../http/problem.js";
import type { Decision } from "../limiter/decision.js";
import type { Limiter } from "../limiter/limiter.js";
import { expressAddress, nodeHops } from "./framework-address.js";
import { Gate, type Passage, type RequestReader } from "./gate.js";
import type { GateOptions } from "./gate-options.js";

export type { CostSource, EndedResponse, SettleOption } from "./settle-option.js";

declare global {
  namespace Express {
    interface Locals {
      /** The decision that let this request through, or refused it. */
      rateLimit?: Decision;
    }
  }
}

export interface RateLimitOptions extends GateOptions<Request> {
  /** Answers a refused request instead of the problem body; status, Retry-After and RateLimit fields are set already. */
  onRefused?: (req: Request, res: Response, next: NextFunction, decision: Decision) => void | Promise<void>;
}

export interface RateLimitHandler {
  (req: Request, res: Response, next: NextFunction): void;
  readonly limiter: Limiter;
}

const reader: RequestReader<Request> = {
  raw: (req) => req,
  method: (req) => req.method,
  target: (req) => req.originalUrl,
  hops: nodeHops,
  address: expressAddress,
  legacyReset: "epoch",
  extraOptions: ["onRefused"],
};

export function rateLimit(options: RateLimitOptions): RateLimitHandler {
  const gate = new Gate(options, reader);
  const { onRefused } = options;

  const refuse = async (req: Request, res: Response, next: NextFunction, decision: Decision): Promise<void> => {
    try {
      res.statusCode = refusalStatus(decision);
      for (const [name, value] of retryFields(decision)) res.setHeader(name, value);
      if (onRefused !== undefined) return await onRefused(req, res, next, decision);
      res.setHeader("Content-Type", PROBLEM_CONTENT_TYPE);
      res.end(JSON.stringify(problemOf(decision)));
    } catch (error) {
      next(error);
    }
  };

  const handler = (req: Request, res: Response, next: NextFunction): void => {
    const proceed = ({ decision, fields, left }: Passage): void => {
      if (left) return;
      if (decision === undefined) {
        next();
        return;
      }
      // Not on `req`: a new property there costs as much as the whole decision, because Express has changed its prototype.
      res.locals.rateLimit = decision;
      // If a handler has answered without waiting for us, headers can no longer be set.
      if (!res.headersSent) for (const [name, value] of fields) res.setHeader(name, value);
      if (!decision.allowed) {
        void refuse(req, res, next, decision);
        return;
      }
      gate.holdUntilClose(decision, req, res);
      next();
    };
    gate.check(req).then(proceed, next);
  };
  return Object.assign(handler, { limiter: gate.limiter });
}
