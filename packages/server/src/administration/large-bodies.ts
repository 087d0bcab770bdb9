/**
 * Rule documents in: bodies above 64 KiB are parsed and judged on a thread of their own, because parsing eight megabytes on the event
 * loop would hold up every check. The rule table judges rules, not the schemas: it names every mistake.
 */
import type { FastifyRequest, FastifySchemaCompiler } from "fastify";
import { invalidRules, type Mistake } from "sluice";
import { TimeSlice } from "sluice/internal";
import type { TSchema } from "typebox";
import { readDocument } from "../configuration/document-text.js";
import { readBodyInWorker } from "../configuration/rule-worker.js";
import { BODY_LIMIT, validatorCompiler as bySchema, invalidJson, type LargeBodies } from "../http/json-body.js";
import { documentBody, ruleBody } from "./schemas.js";

/** `placeOf`: where in the document a rule of that id stands, or would be added. */
export function largeBodies(placeOf: (id: string) => number): LargeBodies {
  return {
    // Smaller ones are parsed in a millisecond or two.
    aboveBytes: BODY_LIMIT,
    async read({ params }: FastifyRequest, body: Buffer): Promise<unknown> {
      const { id } = params as { id?: string };
      const read = await readBodyInWorker(body, id);
      if ("unreadable" in read) throw invalidJson(read.unreadable);
      if ("mistakes" in read) {
        throw invalidRules(id === undefined ? read.mistakes : moved(read.mistakes, `rules[${placeOf(id)}]`));
      }
      const { rules } = (await readDocument(Buffer.from(read.document).toString(), new TimeSlice())) as {
        rules: unknown[];
      };
      if (id !== undefined) return rules[0];
      return { rules, ...(read.version !== undefined && { version: read.version }) };
    },
  };
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
