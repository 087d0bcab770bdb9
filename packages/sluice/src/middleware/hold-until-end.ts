/**
 * The work after a request was admitted: its lease is renewed while the response runs and released at its end, its reservation is kept
 * and settled, and its charge is given back where the options say so.
 */
import type { ServerResponse } from "node:http";
import { SluiceError } from "../errors.js";
import { warnOnce } from "../http/warn-once.js";
import type { Decision } from "../limiter/decision.js";
import { holdReservation } from "../limiter/held-reservation.js";
import { Lease } from "../limiter/lease.js";
import type { Limiter } from "../limiter/limiter.js";
import type { Attributes } from "../rules/rule.js";
import { type SeenResponse, type SettleOption, toldCosts } from "./settle-option.js";

export interface Aftermath<Request> {
  readonly limiter: Limiter;
  readonly skipSuccessful: boolean;
  readonly skipFailed: boolean;
  readonly settle: SettleOption<Request> | undefined;
}

interface ResponseEnd {
  readonly status: number;
  /** It was sent to its end. */
  readonly isWhole: boolean;
}

/** To be called once, when the response has ended. */
export type End = (end: ResponseEnd) => void;

/** The response that a decision let through, where it has to be settled. */
export interface Settling<Request> {
  readonly request: Request;
  readonly seen: SeenResponse;
  /** Breaks the response off. */
  readonly stop: () => void;
}

function isFailed({ status, isWhole }: ResponseEnd): boolean {
  return status >= 400 || !isWhole;
}

/** Undefined where nothing is left to do: most requests need no listener. */
export function holdUntilEnd<Request>(
  decision: Decision,
  { limiter, skipSuccessful, skipFailed, settle }: Aftermath<Request>,
  settling?: Settling<Request>,
): End | undefined {
  const { lease } = decision;
  if (lease === undefined && !skipSuccessful && !skipFailed && settling === undefined) return undefined;
  let renewal: NodeJS.Timeout | undefined;
  if (lease !== undefined) {
    renewal = setInterval(() => {
      lease.renew().then((held) => {
        if (!held) clearInterval(renewal);
      }, ignore);
    }, Lease.renewEveryMs(lease));
    renewal.unref();
  }
  const settleWith = settling && settle && settleAtEnd(decision, { limiter, settle, settling });
  let ended = false;
  return (end) => {
    if (ended) return;
    ended = true;
    clearInterval(renewal);
    if (lease !== undefined) (end.isWhole ? lease.release() : Lease.leave(lease)).catch(ignore);
    // Gives back what was held, too.
    const isGivenBack = isFailed(end) ? skipFailed : skipSuccessful;
    if (isGivenBack) limiter.refund(decision).catch(ignore);
    settleWith?.(end, isGivenBack);
  };
}

function settleAtEnd<Request>(
  { reservation }: Decision,
  how: { limiter: Limiter; settle: SettleOption<Request>; settling: Settling<Request> },
): (end: ResponseEnd, isGivenBack: boolean) => void {
  const { limiter, settle, settling } = how;
  const { seen, request, stop } = settling;
  const held = holdReservation({
    limiter,
    reservation,
    // A function is asked once: it may do more than to tell a cost.
    usedSoFar: () => (typeof settle === "function" ? {} : toldCosts(settle, seen)),
    onRefused: stop,
    onMistake: warnOfMistake,
  });
  const costsAt = async (end: ResponseEnd): Promise<Attributes> => {
    if (typeof settle !== "function") return toldCosts(settle, seen);
    const header = (name: string): string | undefined => seen.headerOf(name.toLowerCase());
    return (await settle(request, { ...end, bytes: seen.reading.bytes, header })) ?? {};
  };
  const usedAt = async (end: ResponseEnd): Promise<Attributes | undefined> => {
    const costs = await costsAt(end);
    return end.status >= 400 && Object.keys(costs).length === 0 ? undefined : costs;
  };
  return (end, isGivenBack) => held.end(isGivenBack ? {} : usedAt(end));
}

/** Nobody waits for a settlement any more: the mistake is the application's, and what was held stands as spent. */
function warnOfMistake(error: unknown): void {
  // A limiter that was closed meanwhile is no mistake.
  if (error instanceof SluiceError && error.code !== "invalid-request") return;
  const why = error instanceof Error ? error.message : String(error);
  warnOnce("SLUICE_NOT_SETTLED", `settle: ${why}. What was held stands as spent.`);
}

/** The store did not answer. The response is out; leases and counters end by themselves, and the limiter has reported the outage. */
function ignore(): void {}

/** Responses of HTTP/2 have no `closed` and no `writableFinished`; their stream knows. */
type NodeResponse = ServerResponse & { readonly stream?: { readonly destroyed: boolean; readonly rstCode: number } };

/** Node tells the end of a response by "close": after it was sent, and when the client went away before. */
export function endWithResponse(end: End, response: NodeResponse): void {
  const { stream } = response;
  const isWhole = (): boolean => (stream === undefined ? response.writableFinished : stream.rstCode === 0);
  const close = (): void => end({ status: response.statusCode, isWhole: isWhole() });
  // The client may have gone while the store was asked; then no event comes any more.
  if (response.closed || response.destroyed || stream?.destroyed) close();
  else response.once("close", close);
}
