/** The audit log: what administrators did, filtered by actor, rule and time, and as a CSV file. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { SluiceError } from "sluice";
import Type from "typebox";
import type { AuditEntry, AuditFilter } from "../configuration/repository/rule-repository.js";
import { type AdministrationOptions, describeRoute, pageOf, repositoryOf } from "./route.js";
import { auditExportQuery, auditList, auditQuery } from "./schemas.js";

const PAGE = 500;
/** Per file. */
const MOST_EXPORTED = 50_000;

export function registerAuditRoutes(app: FastifyInstance, options: AdministrationOptions): void {
  app.get(
    "/audit",
    describeRoute({
      role: "viewer",
      summary: "What administrators did, newest first",
      querystring: auditQuery,
      reply: auditList,
      errors: ["rules-from-file"],
    }),
    async (request) => {
      const page = pageOf(request);
      const found = await repositoryOf(options).audit({ ...page, ...filterOf(request) });
      const last = found.at(-1);
      const hasMore = found.length === page.limit && last !== undefined && last.id > 1;
      return { entries: found.map(shown), ...(hasMore && { next: last.id }) };
    },
  );

  app.get(
    "/audit/export",
    describeRoute({
      role: "viewer",
      summary: "The audit as a file, CSV or JSON, newest first, at most 50 000 entries",
      querystring: auditExportQuery,
      replyType: "text/csv",
      reply: Type.String(),
      replyAsJson: auditList,
      errors: ["rules-from-file"],
    }),
    async (request, reply) => {
      const { format = "csv" } = request.query as { format?: "csv" | "json" };
      const entries = await readAll(options, filterOf(request));
      reply.header("content-disposition", `attachment; filename="sluice-audit.${format}"`);
      if (format === "json")
        return reply.type("application/json").send(JSON.stringify({ entries: entries.map(shown) }));
      return reply.type("text/csv; charset=utf-8").send(csvOf(entries));
    },
  );
}

async function readAll(options: AdministrationOptions, filter: AuditFilter): Promise<AuditEntry[]> {
  const all: AuditEntry[] = [];
  let before: number | undefined;
  while (all.length < MOST_EXPORTED) {
    const page = await repositoryOf(options).audit({ ...filter, before, limit: PAGE });
    all.push(...page);
    before = page.at(-1)?.id;
    if (page.length < PAGE) break;
  }
  return all;
}

function filterOf(request: FastifyRequest): AuditFilter {
  const { actor, action, rule, from, to } = request.query as Record<string, string | undefined>;
  return { actor, action, rule, fromMs: instantOf("from", from), toMs: instantOf("to", to) };
}

function instantOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (Number.isFinite(ms)) return ms;
  throw new SluiceError(
    "invalid-request",
    `${name}: expected a time such as 2026-11-17T09:00:00Z, got ${JSON.stringify(text)}`,
  );
}

function shown({ atMs, ...entry }: AuditEntry) {
  return { ...entry, at: new Date(atMs).toISOString() };
}

function csvOf(entries: readonly AuditEntry[]): string {
  const rows = entries.map(({ id, atMs, actor, action, target, details }) =>
    [String(id), new Date(atMs).toISOString(), actor, action, target, JSON.stringify(details)].map(cell).join(","),
  );
  return `${["id,at,actor,action,target,details", ...rows].join("\r\n")}\r\n`;
}

/** RFC 4180. A cell that a spreadsheet would interpret as a formula gets a leading apostrophe (CSV injection). */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
