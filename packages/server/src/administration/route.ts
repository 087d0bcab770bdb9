/** Shared by the admin API's routes: their options, version guard, pagination, and the response to a change. */
import type { FastifyReply, FastifyRequest, RouteShorthandOptions } from "fastify";
import { type Limiter, type Mistake, SluiceError } from "sluice";
import type { TSchema } from "typebox";
import type { AlertPolicies } from "../configuration/alert-policies.js";
import type { Applied, Configuration, ConfigurationLog } from "../configuration/configuration.js";
import { diffText } from "../configuration/diff-text.js";
import type { Page, Role, RuleRepository } from "../configuration/repository/rule-repository.js";
import { type ErrorCode, ServiceError } from "../errors.js";
import type { Credential } from "../http/failed-authentication.js";
import { anyErrors, bodyErrors, problemResponses } from "../http/problem-schema.js";
import type { Figures } from "../monitoring/figures.js";
import type { BlockedKeysView } from "../monitoring/views/keys.js";
import type { RegionsView } from "../monitoring/views/regions.js";
import type { ModelPrice } from "../monitoring/views/spend.js";
import type { StoreView } from "../monitoring/views/store.js";
import type { AlertDesk } from "./alert-routes.js";
import { versionMismatch } from "./schemas.js";
import type { SingleSignOn } from "./single-sign-on.js";
import type { Tokens } from "./tokens.js";
import type { Traffic } from "./try-routes.js";

export interface AdministrationOptions {
  readonly configuration: Configuration;
  readonly limiter: Limiter;
  readonly tokens: Tokens;
  /** Absent: sign-in with tokens only. */
  readonly sso?: SingleSignOn | undefined;
  readonly log: ConfigurationLog;
  /** Traffic figures; absent if monitoring is off. */
  readonly figures?: Figures | undefined;
  /** Recorded traffic to try drafts on. */
  readonly traffic?: Traffic | undefined;
  readonly readStore?: (() => Promise<StoreView>) | undefined;
  readonly readBlockedKeys?: ((rule?: string) => Promise<BlockedKeysView>) | undefined;
  readonly readRegions?: (() => Promise<RegionsView>) | undefined;
  readonly alerts?: AlertDesk | undefined;
  /** The alert policy; absent if monitoring is off. */
  readonly alertPolicies?: AlertPolicies | undefined;
  /** The LLM gateway's price table, in dollars per million tokens. */
  readonly prices?: readonly ModelPrice[] | undefined;
  /** Default for the attribute `region`. */
  readonly region?: string | undefined;
  /** Records a failed authentication. If the address has failed too often, resolves after a delay, with the seconds to wait. */
  readonly noteFailure?: (request: FastifyRequest, credential: Credential) => Promise<number | undefined>;
}

interface RouteDescription {
  readonly role: Role | "anyone";
  readonly summary: string;
  readonly params?: TSchema;
  readonly querystring?: TSchema;
  readonly headers?: TSchema;
  readonly body?: TSchema;
  readonly reply?: TSchema;
  /** Default: JSON. */
  readonly replyType?: string;
  /** An alternative to `replyType` that callers can request. */
  readonly replyAsJson?: TSchema;
  /** Default 200. */
  readonly status?: number;
  readonly bodyLimit?: number;
  /** Default: true for routes with a body. */
  readonly isChange?: boolean;
  /** In addition to those of all routes of its kind. */
  readonly errors?: readonly ErrorCode[];
}

const ofEveryRoute: readonly ErrorCode[] = [
  ...anyErrors,
  "unauthorized",
  "forbidden",
  "cross-origin",
  "too-many-attempts",
  "database-unavailable",
];
const ofChanges: readonly ErrorCode[] = ["rules-from-file", "too-busy", ...bodyErrors];

function errorsOf({ headers, body, isChange = body !== undefined, errors = [] }: RouteDescription): object {
  const codes = [...ofEveryRoute, ...(isChange ? ofChanges : []), ...errors];
  return {
    ...problemResponses(codes),
    // If-Match is the only header that routes read.
    ...(headers !== undefined && problemResponses(["version-mismatch"], versionMismatch)),
  };
}

function replyOf({ reply, replyType, replyAsJson }: RouteDescription): object {
  if (reply === undefined) return { type: "null", description: "Done." };
  if (replyType === undefined) return reply;
  const asJson = replyAsJson && { "application/json": { schema: replyAsJson } };
  return { description: "Default Response", content: { [replyType]: { schema: reply }, ...asJson } };
}

export function describeRoute(description: RouteDescription): RouteShorthandOptions {
  const { role, summary, status = 200, bodyLimit, ...rest } = description;
  const { reply: _reply, replyType: _type, replyAsJson: _json, isChange: _change, errors: _errors, ...parts } = rest;
  const schema = {
    tags: ["administration"],
    summary,
    description: role === "anyone" ? "Needs no token." : `Role: ${role}.`,
    // Either one is sufficient.
    security: role === "anyone" ? [] : [{ adminToken: [] }, { session: [] }],
    ...parts,
    response: {
      [status]: replyOf(description),
      ...errorsOf(description),
    },
  };
  return { config: { role }, schema, ...(bodyLimit !== undefined && { bodyLimit }) };
}

const PAGE = 50;
const LARGEST_PAGE = 500;

export function pageOf(request: FastifyRequest): Page {
  const { before, limit } = request.query as { before?: string; limit?: string };
  const size = Math.min(LARGEST_PAGE, Math.max(1, limit === undefined ? PAGE : Number(limit)));
  return { before: before === undefined ? undefined : Number(before), limit: size };
}

/** The version in `If-Match: "7"` (also weak or unquoted); undefined if absent or `*`, which matches any version. */
export function ifMatchOf(request: FastifyRequest): number | undefined {
  const given = request.headers["if-match"];
  if (given === undefined || given.trim() === "*") return undefined;
  const version = /^(?:W\/)?"?(\d{1,15})"?$/.exec(given.trim())?.[1];
  if (version !== undefined) return Number(version);
  throw new SluiceError("invalid-request", `If-Match: expected one version such as "7", got ${JSON.stringify(given)}`);
}

export function changeOptionsOf(request: FastifyRequest): { dryRun: boolean; message: string | undefined } {
  const { dryRun, message } = request.query as { dryRun?: "true" | "false"; message?: string };
  return { dryRun: dryRun === "true", message };
}

export function sendApplied(
  reply: FastifyReply,
  { version, changed, diff }: Applied,
  warnings: readonly Mistake[] = [],
): FastifyReply {
  const text = diffText(diff);
  return tagged(reply, version).send({ version, changed, diff, text, ...(warnings.length > 0 && { warnings }) });
}

export function tagged(reply: FastifyReply, version: number): FastifyReply {
  return reply.header("etag", `"${version}"`);
}

export function repositoryOf({ configuration }: AdministrationOptions): RuleRepository {
  if (configuration.repository !== undefined) return configuration.repository;
  throw new ServiceError("rules-from-file", "the rules come from a file, which has no history here");
}
