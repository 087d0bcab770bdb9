/**
 * Large rule documents: a worker thread parses, validates and compares bodies above 64 KiB, because parsing eight megabytes on the event
 * loop would hold up every check. The rule table validates rules, not the schemas: it names every mistake.
 */
import type { FastifyRequest, FastifySchemaCompiler } from "fastify";
import { invalidRules, type Mistake, type Rule } from "sluice";
import type { TSchema } from "typebox";
import { documentOf } from "../configuration/document-text.js";
import { PreparedDocument, readValidated } from "../configuration/draft.js";
import { readBodyInWorker } from "../configuration/rule-worker.js";
import { BODY_LIMIT, validatorCompiler as bySchema, invalidJson, type LargeBodies } from "../http/json-body.js";
import { documentBody, ruleBody } from "./schemas.js";

/** `rulesInForce`: what a document is compared with. */
export function largeBodies(rulesInForce: () => readonly Rule[]): LargeBodies {
  return {
    // Smaller ones are parsed in a millisecond or two.
    aboveBytes: BODY_LIMIT,
    async read({ params }: FastifyRequest, body: Buffer): Promise<unknown> {
      const { id } = params as { id?: string };
      const base = rulesInForce();
      const read = await readBodyInWorker(id === undefined ? { body, base: await documentOf(base) } : { body, id });
      if ("unreadable" in read) throw invalidJson(read.unreadable);
      if ("mistakes" in read) {
        throw invalidRules(id === undefined ? read.mistakes : moved(read.mistakes, `rules[${placeOf(id, base)}]`));
      }
      if (id !== undefined) return (await readValidated(read.document))[0];
      return new PreparedDocument({ ...read, base, diff: read.diff! });
    },
  };
}

/** Where in the document a rule of that id stands, or would be added. */
function placeOf(id: string, rules: readonly Rule[]): number {
  const at = rules.findIndex((rule) => rule.id === id);
  return at < 0 ? rules.length : at;
}

/** The thread reads the rule as a document of its own: its mistakes move to where it stands. */
function moved(mistakes: readonly Mistake[], place: string): Mistake[] {
  return mistakes.map(({ path, message }) => ({ path: path.replace(/^rules\[0\]/, place), message }));
}

export const validatorCompiler: FastifySchemaCompiler<TSchema> = (route) => {
  const { schema, httpPart } = route;
  // The routes that read headers word their mistakes themselves.
  const isJudgedElsewhere = schema === ruleBody || schema === documentBody || httpPart === "headers";
  return isJudgedElsewhere ? (value: unknown) => ({ value }) : bySchema(route);
};
