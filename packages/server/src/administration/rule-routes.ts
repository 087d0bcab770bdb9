/**
 * Rules: read, changed one by one or as a whole, promoted. Each change is one version.
 * Without If-Match a change is made to the newest version, whatever it is: of one rule, the others' changes are kept; of the
 * whole document, the last one wins.
 */
import type { FastifyInstance } from "fastify";
import { type Rule, SluiceError } from "sluice";
import { runInSlices } from "sluice/internal";
import { documentOf, MAX_DOCUMENT_BYTES } from "../configuration/document-text.js";
import { PreparedDocument } from "../configuration/draft.js";
import { callerOf } from "./access.js";
import { promoteCandidate, unknownRule } from "./promote-candidate.js";
import { type AdministrationOptions, changeOptionsOf, describeRoute, ifMatchOf, sendApplied, tagged } from "./route.js";
import { countersBeginAnew, findingConflicts } from "./rule-warnings.js";
import { applied, changeQuery, document, documentBody, guardHeaders, rule, ruleBody, ruleId } from "./schemas.js";
import { unseenAttributes } from "./unseen-attributes.js";

interface ById {
  Params: { id: string };
}

const change = { querystring: changeQuery, headers: guardHeaders, reply: applied, isChange: true };
const unknown = { errors: ["unknown-rule"] } as const;

export function registerRuleRoutes(app: FastifyInstance, options: AdministrationOptions): void {
  registerReads(app, options);
  registerWrites(app, options);
  registerRemovalAndPromotion(app, options);
}

function registerReads(app: FastifyInstance, { configuration }: AdministrationOptions): void {
  app.get(
    "/rules",
    describeRoute({ role: "viewer", summary: "The rules in force", reply: document }),
    async (_, reply) => {
      const { rules, version } = configuration.current;
      const document = await documentOf(rules);
      return tagged(reply, version)
        .type("application/json")
        .send(Buffer.concat([Buffer.from(`{"version":${version},`), document.subarray("{".length)]));
    },
  );

  app.get<ById>(
    "/rules/:id",
    describeRoute({ role: "viewer", summary: "One rule", params: ruleId, reply: rule, ...unknown }),
    async ({ params }, reply) => {
      const { rules, version } = configuration.current;
      const found = rules.find(({ id }) => id === params.id);
      if (found === undefined) throw unknownRule(params.id);
      return tagged(reply, version).send(found);
    },
  );
}

function registerWrites(app: FastifyInstance, { configuration, figures, region }: AdministrationOptions): void {
  app.put(
    "/rules",
    describeRoute({
      role: "editor",
      summary: "Replaces the whole document, atomically",
      ...change,
      body: documentBody,
      bodyLimit: MAX_DOCUMENT_BYTES,
      errors: ["invalid-rules"],
    }),
    async (request, reply) => {
      const { document, version } = guardedDocument(request.body);
      const result = await configuration.apply({
        author: callerOf(request).name,
        kind: "document",
        ifMatch: ifMatchOf(request) ?? version,
        ...changeOptionsOf(request),
        edit: () => document,
      });
      return sendApplied(reply, result);
    },
  );

  app.put<ById>(
    "/rules/:id",
    describeRoute({
      role: "editor",
      summary: "Adds or replaces one rule",
      params: ruleId,
      ...change,
      body: ruleBody,
      bodyLimit: MAX_DOCUMENT_BYTES,
      errors: ["invalid-rules"],
    }),
    async (request, reply) => {
      const { id } = request.params;
      const written = ruleNamed(id, request.body);
      let others: readonly Rule[] = [];
      const result = await configuration.apply({
        author: callerOf(request).name,
        kind: "rule",
        ifMatch: ifMatchOf(request),
        ...changeOptionsOf(request),
        edit: (rules) => {
          others = rules;
          return rules.some((one) => one.id === id)
            ? rules.map((one) => (one.id === id ? written : one))
            : [...rules, written];
        },
      });
      const seen = await figures?.readAttributes();
      return sendApplied(reply, result, [
        ...(seen === undefined ? [] : unseenAttributes(written, seen, region)),
        ...(await runInSlices(findingConflicts(written, others))),
        ...countersBeginAnew(
          others.find((one) => one.id === id),
          written,
        ),
      ]);
    },
  );
}

function registerRemovalAndPromotion(app: FastifyInstance, { configuration }: AdministrationOptions): void {
  app.delete<ById>(
    "/rules/:id",
    describeRoute({ role: "editor", summary: "Removes one rule", params: ruleId, ...change, ...unknown }),
    async (request, reply) => {
      const { id } = request.params;
      const result = await configuration.apply({
        author: callerOf(request).name,
        kind: "rule",
        ifMatch: ifMatchOf(request),
        ...changeOptionsOf(request),
        edit: (rules) => {
          if (!rules.some((one) => one.id === id)) throw unknownRule(id);
          return rules.filter((one) => one.id !== id);
        },
      });
      return sendApplied(reply, result);
    },
  );

  app.post<ById>(
    "/rules/:id/promote",
    describeRoute({
      role: "editor",
      summary: "Makes the candidate the live numbers",
      params: ruleId,
      ...change,
      errors: ["unknown-rule", "no-candidate", "invalid-rules"],
    }),
    async (request, reply) => {
      const { id } = request.params;
      const { dryRun, message = `promote the candidate of ${id}` } = changeOptionsOf(request);
      const result = await configuration.apply({
        author: callerOf(request).name,
        kind: "promote",
        ifMatch: ifMatchOf(request),
        dryRun,
        message,
        edit: (rules) => promoteCandidate(rules, id),
      });
      return sendApplied(reply, result);
    },
  );
}

/** The answer of GET /rules may be sent back as it is: its version then guards the change (optimistic locking). */
function guardedDocument(body: unknown): { document: unknown; version: number | undefined } {
  if (body instanceof PreparedDocument) return { document: body, version: versionIn(body.version) };
  if (typeof body !== "object" || body === null || Array.isArray(body) || !Object.hasOwn(body, "version")) {
    return { document: body, version: undefined };
  }
  const { version, ...document } = body as { version: unknown };
  return { document, version: versionIn(version ?? null) };
}

function versionIn(version: unknown): number | undefined {
  if (version === undefined || Number.isSafeInteger(version)) return version as number | undefined;
  throw new SluiceError("invalid-request", `version: expected a version's number, got ${JSON.stringify(version)}`);
}

/** The id stands in the path already; one in the body must be the same. */
function ruleNamed(id: string, body: unknown): Rule {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new SluiceError("invalid-request", "body: expected a rule {id, key, algorithm, limit, ...}");
  }
  const written = body as { id?: unknown };
  if (written.id === undefined) return { id, ...written } as Rule;
  if (written.id === id) return written as Rule;
  throw new SluiceError("invalid-request", `id: expected ${JSON.stringify(id)} as in the path, or none`);
}
