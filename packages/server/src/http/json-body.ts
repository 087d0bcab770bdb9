/**
 * Parses request bodies for every route: JSON in UTF-8, validated against the route's schema.
 * A field named `__proto__` becomes an ordinary own field (JSON.parse does that), and the limiter reads own fields only, so no prototype
 * pollution is possible and nothing needs to be stripped.
 */
import { isAscii, isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from "fastify";
import { SluiceError } from "sluice";
import type { TSchema } from "typebox";
import { ServiceError } from "../errors.js";
import { validatorOf } from "./schema-mistake.js";

/** Default for routes that set no limit of their own. */
export const BODY_LIMIT = 64 * 1024;

/** Parses bodies that would block the event loop. */
export interface LargeBodies {
  /** Bodies above this go to `read`. */
  readonly aboveBytes: number;
  read(request: FastifyRequest, body: Buffer): Promise<unknown>;
}

export function acceptJson(app: FastifyInstance, large?: LargeBodies): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    const bytes = body as Buffer;
    // Many clients send Content-Type on every request, even without a body (a promotion, a DELETE).
    if (bytes.length === 0 && request.routeOptions.schema?.body === undefined) {
      done(null, undefined);
      return;
    }
    if (large !== undefined && bytes.length > large.aboveBytes) {
      large.read(request, bytes).then(
        (value) => done(null, value),
        (error) => done(error),
      );
      return;
    }
    try {
      if (bytes.length > BODY_LIMIT) boundValues(bytes);
      done(null, parseJson(bytes));
    } catch (error) {
      done(error as Error);
    }
  });
}

/**
 * Accepts JSON under any `Content-Type`, or none, as `curl -d` sends it. Not from a web page, which can send some types cross-site without
 * a preflight (CSRF); browsers give themselves away by `Origin`.
 */
export function acceptJsonOfAnyType(scope: FastifyInstance): void {
  acceptMalformedTypes(scope);
  scope.addContentTypeParser("*", { parseAs: "buffer" }, (request, body, done) => {
    const { origin, "content-type": type = "none" } = request.raw.headers;
    try {
      if (origin !== undefined) throw unsupportedType(type);
      done(null, parseJson(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

/** RFC 9110, section 8.3.1. */
const MEDIA_TYPE = /^\s*[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+\s*(?:;|$)/;

/**
 * For routes whose body may have any type: Fastify answers 415 to a `Content-Type` that is not `type/subtype`, before it asks a parser.
 * `request.raw.headers` keeps the type as received.
 */
export function acceptMalformedTypes(scope: FastifyInstance): void {
  scope.addHook("onRequest", (request, _reply, done) => {
    const type = request.raw.headers["content-type"];
    if (type !== undefined && !MEDIA_TYPE.test(type)) request.headers = { "content-type": "application/octet-stream" };
    done();
  });
}

export function unsupportedType(came: string): ServiceError {
  return new ServiceError(
    "unsupported-media-type",
    `content-type: expected application/json, got ${came.slice(0, 100)}`,
  );
}

/** Twenty for each request of a full batch. Parsing a megabyte of small values would block every check for tens of milliseconds. */
const MOST_VALUES = 20_000;
const [QUOTE, BACKSLASH, COMMA, BRACE, BRACKET] = Buffer.from('"\\,{[');

/** Counts commas and brackets outside of strings, before parsing. */
function boundValues(bytes: Buffer): void {
  let count = 0;
  let inText = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) inText = !inText;
    else if (byte === BACKSLASH) i++;
    else if (!inText && (byte === COMMA || byte === BRACE || byte === BRACKET)) count++;
  }
  if (count > MOST_VALUES) {
    throw new ServiceError("body-too-large", `body: expected at most ${MOST_VALUES} values, got ${count}`);
  }
}

export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) throw invalidJson("nothing");
  const text = bodyText(bytes);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidJson((error as Error).message);
  }
}

/** Invalid UTF-8 would decode to replacement characters, so that different clients would share a key. */
function bodyText(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString("latin1");
  if (!isUtf8(bytes)) throw new SluiceError("invalid-request", "body: expected UTF-8");
  return bytes.toString("utf8");
}

export function invalidJson(why: string): SluiceError {
  return new SluiceError("invalid-request", `body: expected JSON, got ${why.slice(0, 200)}`);
}

/** Replaces Fastify's default validator, which coerces "5" to 5 and silently drops unknown fields. */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validate = validatorOf(schema);
  return (value: unknown) => {
    const wrong = validate(value, httpPart ?? "body");
    return wrong === undefined ? { value } : { error: new SluiceError("invalid-request", wrong) };
  };
};
