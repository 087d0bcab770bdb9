/**
 * envoyproxy/ratelimit's `POST /json`: the same request and response as proto3 JSON, with any `Content-Type`. 200 or 429 by the overall
 * code, 400 for malformed input, including unknown fields.
 */
import type { FastifyInstance } from "fastify";
import { SluiceError } from "sluice";
import Type, { type TSchema } from "typebox";
import { acceptJsonOfAnyType } from "../../http/json-body.js";
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

/** A request's hits are 32 bits. */
const MOST_HITS = 2 ** 32 - 1;
const descriptorFields = ["entries", "limit", "hitsAddend", "isNegativeHits"];

/** In proto3 JSON, null stands for a field's default. */
const nullable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const entry = Type.Object({ key: nullable(Type.String()), value: nullable(Type.String()) });
const rateLimitRequest = Type.Object(
  {
    domain: Type.String({ minLength: 1 }),
    descriptors: Type.Array(Type.Object({ entries: nullable(Type.Array(entry)) }), { minItems: 1 }),
    hitsAddend: nullable(
      Type.Union([Type.Integer({ minimum: 0, maximum: MOST_HITS }), Type.String({ pattern: "^[0-9]{1,9}$" })]),
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
  app.register(async (scope) => {
    acceptJsonOfAnyType(scope);
    scope.post(
      "/json",
      {
        schema: {
          summary: "Envoy's ShouldRateLimit in proto3 JSON",
          tags: ["gateways"],
          body: rateLimitRequest,
          response: { 200: rateLimitResponse, 429: rateLimitResponse },
        },
        // The schemas are documentation only: proto3 JSON allows more spellings than a schema can express, and responses are not filtered
        // by them.
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
  });
}

type Json = Readonly<Record<string, unknown>>;

/** Accepts proto3 JSON: names in camelCase or as in the proto, 64-bit integers as string or number, null as absent. */
function requestFromJson(body: unknown): RateLimitRequest {
  const request = objectAt(body, "body", ["domain", "descriptors", "hitsAddend"]);
  const descriptors = listAt(request.descriptors, "descriptors");
  return {
    domain: textAt(request.domain, "domain"),
    descriptors: descriptors.map((one, i) => descriptorFromJson(one, `descriptors[${i}]`)),
    hitsAddend: countAt(request.hitsAddend, "hitsAddend", MOST_HITS),
  };
}

function descriptorFromJson(value: unknown, path: string): RateLimitDescriptor {
  const { entries, limit, hitsAddend, isNegativeHits } = objectAt(value, path, descriptorFields);
  return {
    entries: listAt(entries, `${path}.entries`).map((entry, i) => {
      const at = `${path}.entries[${i}]`;
      const { key, value: text } = objectAt(entry, at, ["key", "value"]);
      return { key: textAt(key, `${at}.key`), value: textAt(text, `${at}.value`) };
    }),
    ...(limit != null && { limit: limitFromJson(limit, `${path}.limit`) }),
    ...(hitsAddend != null && { hitsAddend: { value: countAt(hitsAddend, `${path}.hitsAddend`) } }),
    isNegativeHits: flagAt(isNegativeHits, `${path}.isNegativeHits`),
  };
}

function limitFromJson(value: unknown, path: string): { requestsPerUnit: number; unit: number } {
  const { unit, requestsPerUnit } = objectAt(value, path, ["requestsPerUnit", "unit"]);
  const number = typeof unit === "string" ? unitNames.indexOf(unit as (typeof unitNames)[number]) : unit;
  if (!Number.isSafeInteger(number) || (number as number) < 0) throw expected(`${path}.unit`, "a unit");
  return { requestsPerUnit: countAt(requestsPerUnit, `${path}.requestsPerUnit`), unit: number as number };
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

/** Omits defaults, as proto3 JSON does. */
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

function expected(path: string, what: string): SluiceError {
  return new SluiceError("invalid-request", `${path}: expected ${what}`);
}

/** Returns the fields by camelCase name. An unknown field, or one given in both spellings, is a mistake. */
function objectAt(value: unknown, path: string, names: readonly string[]): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw expected(path, "an object");
  const fields: Record<string, unknown> = {};
  for (const [spelled, one] of Object.entries(value)) {
    const name = names.find((known) => known === spelled || snakeCase(known) === spelled);
    if (name === undefined) throw expected(path, `no field but ${names.join(", ")}, got ${spelled.slice(0, 100)}`);
    if (Object.hasOwn(fields, name)) throw expected(path, `${name} once, got it in two spellings`);
    fields[name] = one;
  }
  return fields;
}

const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

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

function flagAt(value: unknown, path: string): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== "boolean") throw expected(path, "true or false");
  return value;
}

function countAt(value: unknown, path: string, most = Number.MAX_SAFE_INTEGER): number {
  if (value === undefined || value === null) return 0;
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
  if (!Number.isSafeInteger(number) || (number as number) < 0 || (number as number) > most)
    throw expected(path, `a whole number from 0 to ${most}`);
  return number as number;
}
