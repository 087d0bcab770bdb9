/**
 * Bodies and parameters in: JSON, read in slices where it is large, and held against the route's schema. Rules are judged by
 * the rule table instead, which names every mistake.
 */
import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from "fastify";
import { SluiceError } from "sluice";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { readDocument } from "../configuration/document-text.js";
import { Pace } from "../configuration/pace.js";
import { type Found, schemaMistake } from "../schema-mistake.js";
import { documentBody, rule } from "./schemas.js";

export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, async (_: FastifyRequest, body: string) => {
    try {
      return await readDocument(body, new Pace());
    } catch (error) {
      throw new SluiceError("invalid-request", `body: expected JSON, got ${(error as Error).message.slice(0, 200)}`);
    }
  });
}

export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const isJudgedByTable = schema === rule || schema === documentBody;
  if (isJudgedByTable) return (value: unknown) => ({ value });
  const validator = Compile(schema);
  return (value: unknown) => {
    if (validator.Check(value)) return { value };
    const wrong = schemaMistake([...validator.Errors(value)] as unknown as Found[], value, httpPart ?? "body");
    return { error: new SluiceError("invalid-request", wrong) };
  };
};
