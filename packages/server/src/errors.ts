/**
 * Every error code of the service in addition to the library's (`errors.ts` there): HTTP status, meaning, remedy.
 * This is the single table: docs/errors.md is generated from it, and the OpenAPI document lists its codes.
 * A refusal is never an error.
 */
import type { ErrorCode as LibraryErrorCode, Mistake } from "sluice";
import { errorKinds as libraryErrors } from "sluice/internal";

interface ErrorKind {
  readonly status: number;
  /** When the service returns it. */
  readonly meaning: string;
  readonly remedy: string;
}

/** Grouped by the part of the service that returns them. */
export const serviceErrors = {
  http: {
    unauthorized: {
      status: 401,
      meaning: "The request carries no token, or one that this service does not know.",
      remedy: "Send `Authorization: Bearer` and a token: for /v1 the one of --api-token, for /admin/v1 an admin token.",
    },
    "not-found": { status: 404, meaning: "No route has this path.", remedy: "/docs lists every route." },
    "method-not-allowed": {
      status: 405,
      meaning: "The path answers other methods; the `Allow` header lists them.",
      remedy: "Use a method that the `Allow` header names.",
    },
    "too-slow": {
      status: 408,
      meaning: "The request did not arrive whole in time.",
      remedy: "Send headers and body within ten seconds.",
    },
    "body-too-large": {
      status: 413,
      meaning:
        "The body is larger than the route accepts: 64 KiB; 1 MiB and 20 000 values for a batch; 8 MiB for a rule document; --usage-body-limit through the proxy. The message names the limit.",
      remedy: "Send a smaller body, or several.",
    },
    "unsupported-media-type": {
      status: 415,
      meaning: "The body is not JSON by its `Content-Type`.",
      remedy: "Send JSON with `Content-Type: application/json`.",
    },
    "foreign-host": {
      status: 421,
      meaning: "The `Host` header names another site (protection against DNS rebinding).",
      remedy: "Call the service by its address or localhost, or name the host in --allowed-hosts.",
    },
    "headers-too-large": {
      status: 431,
      meaning: "The headers are larger than 16 KiB.",
      remedy: "Send at most 16 KiB of headers.",
    },
    internal: {
      status: 500,
      meaning: "Sluice failed. The cause stays in the log: it may name files and addresses.",
      remedy: "Read the service's log, and report the defect.",
    },
  },
  administration: {
    forbidden: {
      status: 403,
      meaning: "The token's role is too low for the route.",
      remedy: "Use a token of the role that the message names.",
    },
    "cross-origin": {
      status: 403,
      meaning: "The session cookie came from a page that is not the dashboard's (CSRF protection).",
      remedy: "With the session cookie, call from the dashboard's own pages; else send a token.",
    },
    "unknown-version": {
      status: 404,
      meaning: "The rules have no version of this number.",
      remedy: "Use a version that GET /admin/v1/versions lists.",
    },
    "unknown-token": {
      status: 404,
      meaning: "No token has this name.",
      remedy: "Use a name that GET /admin/v1/tokens lists.",
    },
    "unknown-session": {
      status: 404,
      meaning: "No open session of the caller has this id.",
      remedy: "Use an id that GET /admin/v1/sessions lists.",
    },
    "unknown-alert": {
      status: 404,
      meaning: "No alert of this id fires.",
      remedy: "Use the id of an alert that GET /admin/v1/alerts lists as firing.",
    },
    "unknown-silence": {
      status: 404,
      meaning: "No silence has this id, or it is over.",
      remedy: "Use an id that GET /admin/v1/alerts/silences lists.",
    },
    "unknown-receiver": {
      status: 404,
      meaning: "The alert policy has no receiver of this id.",
      remedy: "Use an id that GET /admin/v1/alerts/policy lists.",
    },
    "monitoring-off": {
      status: 404,
      meaning: "The service runs with --monitoring off and counts no traffic.",
      remedy: "Start the service with --monitoring on.",
    },
    "token-exists": {
      status: 409,
      meaning: "Another token has this name.",
      remedy: "Choose another name, or delete that token first.",
    },
    "no-candidate": {
      status: 409,
      meaning: "The rule has no candidate to promote.",
      remedy: "Give the rule a candidate first.",
    },
    "no-recording": {
      status: 409,
      meaning: "This instance does not record its traffic: there is nothing to try a draft on.",
      remedy: "Start the service with --record FOLDER, or replay access logs with `sluice simulate`.",
    },
    "too-busy": {
      status: 409,
      meaning:
        "Other instances made ten changes while this one was prepared (only without If-Match), sixteen large bodies are waiting already, or another draft is being tried on traffic.",
      remedy: "Try again.",
    },
    "rules-from-file": {
      status: 409,
      meaning:
        "The rules come from --rules FILE: they cannot be changed here, and have neither versions nor named tokens.",
      remedy:
        "Change that file: the service reloads it. Or start without --rules, and import it: `sluice rules apply FILE`.",
    },
    "version-mismatch": {
      status: 412,
      meaning:
        "If-Match names a version that is not the newest. The body holds `currentVersion` and `diff`: what changed since.",
      remedy: "Look at the difference, apply your change to the current version, and send its number in If-Match.",
    },
    "too-many-attempts": {
      status: 429,
      meaning:
        "The token is wrong, and ten others from the same address were wrong within a minute. The right token still passes.",
      remedy: "Wait as long as `Retry-After` says.",
    },
    "database-unavailable": {
      status: 503,
      meaning: "The database does not answer.",
      remedy: "Check that the database is up and reachable; checks go on with the rules in force meanwhile.",
    },
    "too-many-streams": {
      status: 503,
      meaning: "A hundred live streams are open, or twenty of this token.",
      remedy: "Close other dashboards, or ask another instance.",
    },
  },
  proxy: {
    "unsupported-coding": {
      status: 501,
      meaning: "The body has a transfer coding other than chunked.",
      remedy: "Through the proxy, send bodies with Content-Length or `Transfer-Encoding: chunked`.",
    },
    "upstream-unreachable": {
      status: 502,
      meaning: "The proxy cannot connect to the server of --upstream.",
      remedy: "Check that the server of --upstream is up.",
    },
    "invalid-call": {
      status: 400,
      meaning:
        "With --usage: the body is not the JSON of a call, or can be read in two ways. The message names the place.",
      remedy: "Send one JSON object in UTF-8, each name once; files as multipart/form-data.",
    },
    "too-many-bodies": {
      status: 503,
      meaning:
        "With --usage the proxy holds bodies until their requests are decided, and others take up the memory for it.",
      remedy: "Try again in a moment; --usage-body-limit bounds one body, and eight times as much all of them.",
    },
    "upstream-silent": {
      status: 504,
      meaning: "The server of --upstream sent nothing for two minutes.",
      remedy: "Check why the server of --upstream does not answer.",
    },
  },
} as const satisfies Record<string, Record<string, ErrorKind>>;

const { http, administration, proxy } = serviceErrors;

type ServiceErrorCode = keyof typeof http | keyof typeof administration | keyof typeof proxy;
export type ErrorCode = LibraryErrorCode | ServiceErrorCode;

/** Every code that a response of the service may carry. */
export const errorKinds: Readonly<Record<ErrorCode, ErrorKind>> = {
  ...libraryErrors,
  ...http,
  ...administration,
  ...proxy,
};

/** Thrown by the service; the counterpart of the library's `SluiceError`. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ServiceErrorCode;
  readonly status: number;
  readonly remedy: string;
  /** Extension members of the problem: the current version, the difference. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly mistakes: readonly Mistake[] = [];

  constructor(
    code: ServiceErrorCode,
    message: string,
    options: { cause?: unknown; details?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = errorKinds[code].status;
    this.remedy = errorKinds[code].remedy;
    this.details = options.details ?? {};
  }
}
