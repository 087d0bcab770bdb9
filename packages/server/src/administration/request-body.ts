/**
 * Bodies and parameters in: JSON, held against the route's schema. Rules are judged by the rule table instead, which names every
 * mistake. A large body is read and judged on a thread of its own: to parse eight megabytes here would hold up every check.
 */
import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from "fastify";
import { invalidRules, type Mistake, SluiceError } from "sluice";
import type { TSchema } from "typebox";
import { readDocument } from "../configuration/document-text.js";
import { Pace } from "../configuration/pace.js";
import { readBodyApart } from "../configuration/read-apart.js";
import { validatorOf } from "../schema-mistake.js";
import { documentBody, ruleBody } from "./schemas.js";

/** Parsed here in a millisecond or two. */
const LARGEST_READ_HERE = 64 * 1024;

/** `placeOf`: where in the document a rule of that id stands, or would be added. */
export function acceptJson(app: FastifyInstance, placeOf: (id: string) => number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, async (request: FastifyRequest, body: Buffer) => {
    if (body.length <= LARGEST_READ_HERE) return parse(body.toString());
    const { id } = request.params as { id?: string };
    const read = await readBodyApart(body, id);
    if ("unreadable" in read) throw invalidJson(read.unreadable);
    if ("mistakes" in read) {
      throw invalidRules(id === undefined ? read.mistakes : moved(read.mistakes, `rules[${placeOf(id)}]`));
    }
    const { rules } = (await readDocument(Buffer.from(read.document).toString(), new Pace())) as { rules: unknown[] };
    if (id !== undefined) return rules[0];
    return { rules, ...(read.version !== undefined && { version: read.version }) };
  });
}

/** The rule was read as a document of its own: its mistakes are named where it stands. */
function moved(mistakes: readonly Mistake[], place: string): Mistake[] {
  return mistakes.map(({ path, message }) => ({ path: path.replace(/^rules\[0\]/, place), message }));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidJson((error as Error).message);
  }
}

function invalidJson(why: string): SluiceError {
  return new SluiceError("invalid-request", `body: expected JSON, got ${why.slice(0, 200)}`);
}

export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  // Headers are judged where they are read, in words.
  const isJudgedByTable = schema === ruleBody || schema === documentBody || httpPart === "headers";
  if (isJudgedByTable) return (value: unknown) => ({ value });
  const validate = validatorOf(schema);
  return (value: unknown) => {
    const wrong = validate(value, httpPart ?? "body");
    return wrong === undefined ? { value } : { error: new SluiceError("invalid-request", wrong) };
  };
};
