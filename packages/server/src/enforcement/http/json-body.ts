/**
 * Bodies in, on every route: JSON parsed as it is, and held against the route's schema.
 * Own fields named `__proto__` stay fields (JSON.parse makes them so) and the limiter reads own fields only, so nothing needs to be
 * searched for or removed.
 */
import { isAscii, isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifySchemaCompiler } from "fastify";
import { SluiceError } from "sluice";
import type { TSchema } from "typebox";
import { validatorOf } from "../../schema-mistake.js";

export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => {
    try {
      done(null, JSON.parse(bodyText(body as Buffer)));
    } catch (error) {
      done(error instanceof SluiceError ? error : invalidJson(error));
    }
  });
}

/** Bytes that are no UTF-8 would be read as question marks, and then count as the key of somebody else. */
export function bodyText(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString("latin1");
  if (!isUtf8(bytes)) throw new SluiceError("invalid-request", "body: expected UTF-8");
  return bytes.toString("utf8");
}

export function invalidJson(error: unknown): SluiceError {
  return new SluiceError("invalid-request", `body: expected JSON, got ${(error as Error).message.slice(0, 200)}`);
}

/** Instead of Fastify's default, which turns "5" into 5 and drops unknown fields in silence. */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validate = validatorOf(schema);
  return (value: unknown) => {
    const wrong = validate(value, httpPart ?? "body");
    return wrong === undefined ? { value } : { error: new SluiceError("invalid-request", wrong) };
  };
};
