/**
 * The work after a request was admitted: its lease is renewed while the response runs and released at its end,
 * and its charge is given back where the options say so.
 */
import type { ServerResponse } from "node:http";
import type { Decision } from "../limiter/decision.js";
import type { Limiter } from "../limiter/limiter.js";

export interface Aftermath {
  readonly limiter: Limiter;
  readonly skipSuccessful: boolean;
  readonly skipFailed: boolean;
}

/** To be called once, when the response has ended. `failed`: status 400 or above, or cut off. */
export type End = (failed: boolean) => void;

/** Undefined where nothing is left to do: most requests need no listener. */
export function holdUntilEnd(decision: Decision, { limiter, skipSuccessful, skipFailed }: Aftermath): End | undefined {
  const { lease } = decision;
  if (lease === undefined && !skipSuccessful && !skipFailed) return undefined;
  let renewal: NodeJS.Timeout | undefined;
  if (lease !== undefined) {
    // Three tries a term: one renewal may be lost to a hiccup of the store, even two.
    renewal = setInterval(() => {
      lease.renew().then((held) => {
        if (!held) clearInterval(renewal);
      }, ignore);
    }, lease.expiresAfterMs / 3);
    renewal.unref();
  }
  let ended = false;
  return (failed) => {
    if (ended) return;
    ended = true;
    clearInterval(renewal);
    lease?.release().catch(ignore);
    if (failed ? skipFailed : skipSuccessful) limiter.refund(decision).catch(ignore);
  };
}

/** The store did not answer. The response is out; leases and counters end by themselves, and the limiter has reported the outage. */
function ignore(): void {}

/** Responses of HTTP/2 have no `closed` and no `writableFinished`; their stream knows. */
type NodeResponse = ServerResponse & { readonly stream?: { readonly destroyed: boolean; readonly rstCode: number } };

/** Node tells the end of a response by "close": after it was sent, and when the client went away before. */
export function endWithResponse(end: End, response: NodeResponse): void {
  const { stream } = response;
  const isCutOff = (): boolean => (stream === undefined ? !response.writableFinished : stream.rstCode !== 0);
  const close = (): void => end(response.statusCode >= 400 || isCutOff());
  // The client may have gone while the store was asked; then no event comes any more.
  if (response.closed || response.destroyed || stream?.destroyed) close();
  else response.once("close", close);
}
