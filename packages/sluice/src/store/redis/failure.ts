/**
 * Error messages for a failing Redis: the cause, and the remedy. Most failures at a first start are a wrong address or a missing
 * permission, and the error of Redis or of the client rarely names what to change. Pure: an error in, a `store-unavailable` out. Never
 * contains a password.
 */
import { SluiceError } from "../../errors.js";
import { escaped } from "./printable.js";

/** Characters of a server's error message; Redis's own are shorter. */
const MOST_OF_MESSAGE = 500;

/** The first match wins. */
const remedies: readonly (readonly [pattern: RegExp, remedy: string])[] = [
  // First: it quotes the reply, whose text may look like any of the others.
  [/^malformed reply/, "check what answers at the store's address: Redis, or a proxy that passes on scripts unchanged"],
  [/WRONGPASS|invalid username-password|invalid password/, "check the user and the password in the store's URL"],
  [/NOAUTH|without any password configured/, "Redis and the store's URL disagree on whether there is a password"],
  [
    /NOPERM|no permissions|executing the script can't run this command/,
    "give the Redis user the rights that docs/reliability.md lists",
  ],
  [
    /DB index is out of range/,
    "the server has no database of that number: change the number at the end of the store's URL",
  ],
  [/cluster support disabled/, "the server is not part of a cluster: use redis://, or the address of a cluster node"],
  [/^MOVED|^CROSSSLOT/, "the server is a node of a Redis Cluster: use redis+cluster://"],
  [/^CLUSTERDOWN|Hash slot not served/, "some slots have no leader: see `redis-cli --cluster check`"],
  [
    /All sentinels are unreachable.*(null|undefined|IDONTKNOW|No such master)|No such master/i,
    "no Sentinel knows a master of this name: compare the URL's path with `SENTINEL MASTERS`",
  ],
  [/All sentinels are unreachable/, "check the addresses of the Sentinels, and their password"],
  [/^READONLY/, "the server is a replica: give the leader's address, or use redis+sentinel:// or redis+cluster://"],
  [/^OOM/, "Redis is out of memory: raise maxmemory; every key of Sluice expires by itself"],
  [/^MISCONF/, "Redis cannot save to disk and refuses writes: free its disk or mend its save settings"],
  [/^NOREPLICAS/, "too few replicas are in reach for min-replicas-to-write"],
  [/^MASTERDOWN/, "the server is a replica without its leader: give the leader's address"],
  [/^LOADING/, "Redis is reading its data; it answers when that is done"],
  [
    /wrong version number|packet length too long|ECONNRESET.*TLS|socket disconnected before secure TLS/,
    "one side speaks TLS and the other does not: compare rediss:// and redis:// with the server's port",
  ],
  [
    /self.signed certificate|unable to (get|verify).*(issuer|certificate)|unable to verify the first certificate/,
    "the certificate's authority is not known here: set `tls.ca`, or NODE_EXTRA_CA_CERTS",
  ],
  [
    /certificate required|alert handshake failure/,
    "the server asks for a client certificate: set `tls.cert` and `tls.key`",
  ],
  [
    /Hostname\/IP does not match/,
    "the certificate is for another name: use that name in the URL, or set `tls.servername`",
  ],
  [
    /ETIMEDOUT/,
    "check the address and what filters it; if that is right, one side speaks TLS and the other does not (rediss:// or redis://)",
  ],
  [/ECONNREFUSED|ENOTFOUND|EHOSTUNREACH/, "check the address, and that Redis is up"],
  [/Failed to refresh slots cache/, "none of the cluster's addresses answers: check them, and that Redis is up"],
];

/** An error together with its underlying cause, which errors of a cluster or a Sentinel keep in a field. */
export function fullMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { lastNodeError } = error as { lastNodeError?: unknown };
  return lastNodeError instanceof Error ? `${error.message} ${lastNodeError.message}` : error.message;
}

/** Messages from a server are escaped and truncated: the server may not be Redis. */
export function unavailable(why: string, cause?: unknown, mayHaveRun = false): SluiceError {
  const beneath = cause === undefined ? "" : fullMessage(cause);
  const because = beneath === "" || beneath === why ? "" : ` (${escaped(beneath, MOST_OF_MESSAGE)})`;
  const remedy = remedies.find(([pattern]) => pattern.test(why) || pattern.test(beneath))?.[1];
  const told = remedy === undefined ? "" : `; ${remedy}`;
  return new SluiceError("store-unavailable", `Redis: ${escaped(why, MOST_OF_MESSAGE)}${because}${told}`, {
    cause,
    mayHaveRun,
  });
}

/** The request's id was given back again and again while the request was in flight. */
export function lateRequest(): SluiceError {
  return unavailable("the request's id was given back while the request was on its way");
}

/** Our clock was off by more than a window; Redis reports its own, in ms. No more digits than a date can have. */
export const CALENDAR = /CALENDAR (\d{1,15})\b/;

/** Errors of a healthy Redis that concern only the call. */
const ANSWERS = /^(NOSCRIPT|WRONGTYPE|LONG|TRYAGAIN|(ERR )?CALENDAR|Too many Cluster redirections)\b/;
/** A script error caused by numbers or bytes that the script cannot work with. */
const SCRIPT_ERROR = /^ERR\b.*\buser_script\b/s;
/** Errors that only pass through a script: Redis 6 wraps the server's own state in the script's error. */
const SERVER_STATE =
  /\b(OOM|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|LOADING|CLUSTERDOWN|NOPERM)\b|can't run this command/;

/** Whether Redis answered with an error about the call itself: no sign of an outage, whatever it means for the caller. */
export function isAboutTheCall(error: unknown): boolean {
  return error instanceof Error && (ANSWERS.test(error.message) || isScriptError(error));
}

/** Whether the script failed on one request's own numbers or stored state: other requests would not have failed. */
export function isScriptError(error: unknown): boolean {
  const cause = error instanceof SluiceError ? error.cause : error;
  return cause instanceof Error && SCRIPT_ERROR.test(cause.message) && !SERVER_STATE.test(cause.message);
}

/** Matches a pattern against Redis's own error underneath a failed call. */
export function redisSays(error: unknown, pattern: RegExp): RegExpExecArray | null {
  const cause = error instanceof SluiceError ? error.cause : error;
  return cause instanceof Error ? pattern.exec(cause.message) : null;
}

/** Errors with which Redis refuses a script before it runs. */
const NOT_RUN = /^(TRYAGAIN|CLUSTERDOWN|MOVED|ASK|LOADING|MASTERDOWN|READONLY|NOREPLICAS|MISCONF|NOAUTH|NOPERM)\b/;

/** Whether a failed call may have run anyway, with its answer lost. */
export function mayHaveRun(error: unknown): boolean {
  return error instanceof SluiceError && error.mayHaveRun && redisSays(error, NOT_RUN) === null;
}
