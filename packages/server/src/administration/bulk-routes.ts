/** Changes the mode or the tags of many rules at once, as one version: all or nothing. */
import type { FastifyInstance } from "fastify";
import { type Rule, SluiceError } from "sluice";
import Type from "typebox";
import { callerOf } from "./access.js";
import { unknownRule } from "./promote-candidate.js";
import { type AdministrationOptions, changeOptionsOf, describeRoute, ifMatchOf, sendApplied } from "./route.js";
import { applied, changeQuery, guardHeaders } from "./schemas.js";

/** As many as fit in a body of 64 KiB. */
const MOST_IDS = 900;
const tags = Type.Optional(Type.Array(Type.String({ maxLength: 32 }), { maxItems: 20 }));

const bulkBody = Type.Object(
  {
    ids: Type.Array(Type.String({ maxLength: 64 }), { minItems: 1, maxItems: MOST_IDS }),
    mode: Type.Optional(Type.Union([Type.Literal("enforce"), Type.Literal("shadow"), Type.Literal("off")])),
    addTags: tags,
    removeTags: tags,
  },
  { additionalProperties: false, title: "BulkRequest" },
);

interface BulkChange {
  readonly ids: readonly string[];
  readonly mode?: "enforce" | "shadow" | "off";
  readonly addTags?: readonly string[];
  readonly removeTags?: readonly string[];
}

export function registerBulkRoutes(app: FastifyInstance, { configuration }: AdministrationOptions): void {
  app.post<{ Body: BulkChange }>(
    "/rules",
    describeRoute({
      role: "editor",
      summary: "Sets the mode of many rules, or adds and removes tags, as one version",
      querystring: changeQuery,
      headers: guardHeaders,
      body: bulkBody,
      reply: applied,
      errors: ["unknown-rule", "invalid-rules"],
    }),
    async (request, reply) => {
      const result = await configuration.apply({
        author: callerOf(request).name,
        kind: "document",
        ifMatch: ifMatchOf(request),
        ...changeOptionsOf(request),
        edit: (rules) => changedRules(rules, request.body),
      });
      return sendApplied(reply, result);
    },
  );
}

function changedRules(rules: readonly Rule[], change: BulkChange): Rule[] {
  const { mode, addTags = [], removeTags = [] } = change;
  if (mode === undefined && addTags.length + removeTags.length === 0) {
    throw new SluiceError("invalid-request", "body: expected mode, addTags or removeTags beside ids");
  }
  const wanted = new Set(change.ids);
  const changed = rules.map((rule) => (wanted.delete(rule.id) ? changedRule(rule, change) : rule));
  const [missing] = wanted;
  if (missing !== undefined) throw unknownRule(missing);
  return changed;
}

/** Defaults are not written: a rule that is enabled again is identical to before. */
function changedRule({ mode: before, tags: had = [], ...rule }: Rule, change: BulkChange): Rule {
  const { mode = before, addTags = [], removeTags = [] } = change;
  const kept = [...new Set([...had, ...addTags])].filter((tag) => !removeTags.includes(tag));
  return {
    ...rule,
    ...(mode !== undefined && mode !== "enforce" && { mode }),
    ...(kept.length > 0 && { tags: kept }),
  } as Rule;
}
