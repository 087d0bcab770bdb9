/**
 * `POST /json` of envoyproxy/ratelimit: the same request and response in proto3 JSON. 200 or 429 by the overall code, 400 for what cannot be read.
 */
import type { FastifyInstance } from "fastify";
import { SluiceError } from "sluice";
import Type, { type TSchema } from "typebox";
import type { Observe } from "../../monitoring/observe-requests.js";
import {
  codeNames,
  codes,
  type DescriptorStatus,
  hasLimit,
  type RateLimitDescriptor,
  type RateLimitRequest,
  type RateLimitResponse,
  unitNames,
} from "./rate-limit-messages.js";
import { type ShouldRateLimit, Undecided } from "./should-rate-limit.js";
import { plainStruct } from "./struct-message.js";

/** In proto3 JSON every field may be null, which is its default. */
const nullable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const entry = Type.Object({ key: nullable(Type.String()), value: nullable(Type.String()) });
const rateLimitRequest = Type.Object(
  {
    domain: Type.String({ minLength: 1 }),
    descriptors: Type.Array(Type.Object({ entries: nullable(Type.Array(entry)) }), { minItems: 1 }),
    hitsAddend: nullable(
      Type.Union([
        Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
        Type.String({ pattern: "^[0-9]{1,15}$" }),
      ]),
    ),
  },
  { title: "RateLimitRequest", description: "See envoy.service.ratelimit.v3.RateLimitRequest." },
);
const rateLimitResponse = Type.Object(
  {
    overallCode: Type.Enum(["OK", "OVER_LIMIT"]),
    statuses: Type.Array(Type.Object({ code: Type.Enum(["OK", "OVER_LIMIT"]) })),
  },
  { title: "RateLimitResponse", description: "See envoy.service.ratelimit.v3.RateLimitResponse." },
);

export function registerEnvoyJson(
  app: FastifyInstance,
  { shouldRateLimit, observe }: { shouldRateLimit: ShouldRateLimit; observe: Observe },
): void {
  const observer = observe("http");
  app.post(
    "/json",
    {
      schema: {
        summary: "Envoy's ShouldRateLimit in proto3 JSON",
        tags: ["gateways"],
        body: rateLimitRequest,
        response: { 200: rateLimitResponse, 429: rateLimitResponse },
      },
      // The schemas only describe: proto3 JSON takes more spellings than a schema tells, and answers are not cut to their shape.
      validatorCompiler: () => (value: unknown) => ({ value }),
      serializerCompiler: () => JSON.stringify,
    },
    async (request, reply) => {
      const arrival = { sinceMs: performance.now(), traceparent: request.headers.traceparent };
      const response = await shouldRateLimit(requestFromJson(request.body)).catch((error: unknown) => {
        if (error instanceof Undecided) throw new SluiceError("store-unavailable", error.message);
        throw error;
      });
      const allowed = response.overallCode === codes.ok;
      observer.answered({ allowed, matched: hasLimit(response) }, arrival);
      return reply.code(allowed ? 200 : 429).send(responseToJson(response));
    },
  );
}

type Json = Readonly<Record<string, unknown>>;

/** proto3 JSON: names in camel case or as the proto has them, 64 bits as text or number, null as absent. */
function requestFromJson(body: unknown): RateLimitRequest {
  const request = objectAt(body, "body");
  const descriptors = listAt(field(request, "descriptors"), "descriptors");
  return {
    domain: textAt(field(request, "domain"), "domain"),
    descriptors: descriptors.map((one, i) => descriptorFromJson(one, `descriptors[${i}]`)),
    hitsAddend: countAt(field(request, "hitsAddend", "hits_addend"), "hitsAddend"),
  };
}

function descriptorFromJson(value: unknown, path: string): RateLimitDescriptor {
  const descriptor = objectAt(value, path);
  const limit = field(descriptor, "limit");
  const hits = field(descriptor, "hitsAddend", "hits_addend");
  return {
    entries: listAt(field(descriptor, "entries"), `${path}.entries`).map((entry, i) => {
      const at = `${path}.entries[${i}]`;
      const { key, value: text } = objectAt(entry, at);
      return { key: textAt(key, `${at}.key`), value: textAt(text, `${at}.value`) };
    }),
    ...(limit != null && { limit: limitFromJson(objectAt(limit, `${path}.limit`), `${path}.limit`) }),
    ...(hits != null && { hitsAddend: { value: countAt(hits, `${path}.hitsAddend`) } }),
    isNegativeHits: field(descriptor, "isNegativeHits", "is_negative_hits") === true,
  };
}

function limitFromJson(limit: Json, path: string): { requestsPerUnit: number; unit: number } {
  const unit = field(limit, "unit");
  const number = typeof unit === "string" ? unitNames.indexOf(unit as (typeof unitNames)[number]) : unit;
  if (!Number.isSafeInteger(number) || (number as number) < 0) throw expected(`${path}.unit`, "a unit");
  const requestsPerUnit = countAt(field(limit, "requestsPerUnit", "requests_per_unit"), `${path}.requestsPerUnit`);
  return { requestsPerUnit, unit: number as number };
}

function responseToJson(response: RateLimitResponse): Json {
  const { overallCode, statuses, responseHeadersToAdd, rawBody, dynamicMetadata } = response;
  return {
    overallCode: codeNames[overallCode],
    statuses: statuses.map(statusToJson),
    ...(responseHeadersToAdd.length > 0 && { responseHeadersToAdd }),
    ...(rawBody !== undefined && { rawBody: rawBody.toString("base64") }),
    ...(dynamicMetadata !== undefined && { dynamicMetadata: plainStruct(dynamicMetadata) }),
  };
}

/** Defaults are left out, as proto3 JSON does. */
function statusToJson({ code, currentLimit, limitRemaining, durationUntilReset }: DescriptorStatus): Json {
  return {
    code: codeNames[code],
    ...(currentLimit !== undefined && {
      currentLimit: {
        ...(currentLimit.requestsPerUnit > 0 && { requestsPerUnit: currentLimit.requestsPerUnit }),
        ...(currentLimit.unit > 0 && { unit: unitNames[currentLimit.unit] }),
        ...(currentLimit.name !== "" && { name: currentLimit.name }),
      },
    }),
    ...(limitRemaining > 0 && { limitRemaining }),
    ...(durationUntilReset !== undefined && { durationUntilReset: `${durationUntilReset.seconds}s` }),
  };
}

function field(object: Json, name: string, other = name): unknown {
  return Object.hasOwn(object, name) ? object[name] : Object.hasOwn(object, other) ? object[other] : undefined;
}

function expected(path: string, what: string): SluiceError {
  return new SluiceError("invalid-request", `${path}: expected ${what}`);
}

function objectAt(value: unknown, path: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw expected(path, "an object");
  return value as Json;
}

function listAt(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw expected(path, "a list");
  return value;
}

function textAt(value: unknown, path: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw expected(path, "a text");
  return value;
}

function countAt(value: unknown, path: string): number {
  if (value === undefined || value === null) return 0;
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
  if (!Number.isSafeInteger(number) || (number as number) < 0) throw expected(path, "a whole number of at least 0");
  return number as number;
}
