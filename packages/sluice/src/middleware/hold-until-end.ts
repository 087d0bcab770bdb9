/**
 * The work after a request was admitted: its lease is renewed while the response runs and released at the end, its reservation is kept and
 * settled, and its charge is given back if the options ask for it.
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
  /** True if it was sent to its end. */
  readonly isWhole: boolean;
}

/** To be called once, when the response has ended. */
export type End = (end: ResponseEnd) => void;

/** The response that a decision let through, if it has to be settled. */
export interface Settling<Request> {
  readonly request: Request;
  readonly seen: SeenResponse;
  /** Aborts the response. */
  readonly stop: () => void;
}

function isFailed({ status, isWhole }: ResponseEnd): boolean {
  return status >= 400 || !isWhole;
}

/** Undefined if nothing is left to do: most requests need no listener. */
export function holdUntilEnd<Request>(
  decision: Decision,
  { limiter, skipSuccessful, skipFailed, settle }: Aftermath<Request>,
  settling?: Settling<Request>,
): End | undefined {
  const { lease } = decision;
  if (lease === undefined && !skipSuccessful && !skipFailed && settling === undefined) return undefined;
  const stopRenewing = lease && Lease.keep(lease);
  const settleWith = settling && settle && settleAtEnd(decision, { limiter, settle, settling });
  let ended = false;
  return (end) => {
    if (ended) return;
    ended = true;
    stopRenewing?.();
    if (lease !== undefined) (end.isWhole ? lease.release() : Lease.leave(lease)).catch(ignore);
    // This also gives back what was held.
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
    // A function is called only once: it may do more than report a cost.
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

/** Nobody waits for a settlement any more: the mistake is the application's, and what was held counts as spent. */
function warnOfMistake(error: unknown): void {
  // A limiter that was closed meanwhile is not a mistake.
  if (error instanceof SluiceError && error.code !== "invalid-request") return;
  const why = error instanceof Error ? error.message : String(error);
  warnOnce("SLUICE_NOT_SETTLED", `settle: ${why}. What was held stands as spent.`);
}

/**
 * The store did not answer. The response has been sent; leases and counters expire by themselves, and the limiter has reported the outage.
 */
function ignore(): void {}

/** HTTP/2 responses have no `closed` and no `writableFinished`; their stream knows. */
type NodeResponse = ServerResponse & { readonly stream?: { readonly destroyed: boolean; readonly rstCode: number } };

/** Node signals the end of a response by "close": after it was sent, and if the client disconnected before. */
export function endWithResponse(end: End, response: NodeResponse): void {
  const { stream } = response;
  const isWhole = (): boolean => (stream === undefined ? response.writableFinished : stream.rstCode === 0);
  const close = (): void => end({ status: response.statusCode, isWhole: isWhole() });
  // The client may have disconnected while the store was asked; then no more events come.
  if (response.closed || response.destroyed || stream?.destroyed) close();
  else response.once("close", close);
}
