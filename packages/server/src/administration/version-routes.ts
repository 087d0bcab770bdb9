/** History: every version with author, time, changes and reason; rollback to one. */
import type { FastifyInstance } from "fastify";
import { TimeSlice } from "sluice/internal";
import { diffText, summaryOf } from "../configuration/diff-text.js";
import { readDocument } from "../configuration/document-text.js";
import type { StoredVersion, VersionSummary } from "../configuration/repository/rule-repository.js";
import { ServiceError } from "../errors.js";
import { callerOf } from "./access.js";
import {
  type AdministrationOptions,
  changeOptionsOf,
  describeRoute,
  ifMatchOf,
  pageOf,
  repositoryOf,
  sendApplied,
} from "./route.js";
import {
  applied,
  changeQuery,
  guardHeaders,
  versionDetail,
  versionList,
  versionNumber,
  versionsQuery,
} from "./schemas.js";

/** Versions searched per page of a single rule's history. */
const MOST_SEARCHED = 500;

interface ByVersion {
  Params: { version: string };
}

export function registerVersionRoutes(app: FastifyInstance, options: AdministrationOptions): void {
  app.get(
    "/versions",
    describeRoute({
      role: "viewer",
      summary: "Every version, newest first",
      querystring: versionsQuery,
      reply: versionList,
      errors: ["rules-from-file"],
    }),
    async (request) => {
      const { rule } = request.query as { rule?: string };
      // For a single rule, a page covers the newest versions: the database is not searched completely.
      const page = rule === undefined ? pageOf(request) : { ...pageOf(request), limit: MOST_SEARCHED };
      const found = await repositoryOf(options).versions(page);
      const last = found.at(-1);
      const hasMore = found.length === page.limit && last !== undefined && last.version > 1;
      const wanted = found.filter(({ diff }) => rule === undefined || diff.changes.some((one) => one.rule === rule));
      return { versions: wanted.map(shown), ...(hasMore && { next: last.version }) };
    },
  );

  app.get<ByVersion>(
    "/versions/:version",
    describeRoute({
      role: "viewer",
      summary: "One version",
      params: versionNumber,
      reply: versionDetail,
      errors: ["unknown-version", "rules-from-file"],
    }),
    async ({ params }, reply) => {
      const stored = await readVersion(options, Number(params.version));
      const told = JSON.stringify({ ...shown(stored), diff: stored.diff, text: diffText(stored.diff) });
      // The stored document is JSON already, and may be long: splice it in as text instead of parsing and serialising it.
      return reply.type("application/json").send(`${told.slice(0, -1)},${stored.document.slice(1)}`);
    },
  );

  app.post<ByVersion>(
    "/versions/:version/rollback",
    describeRoute({
      role: "editor",
      summary: "Makes an old version's rules the newest version",
      params: versionNumber,
      querystring: changeQuery,
      headers: guardHeaders,
      reply: applied,
      isChange: true,
      errors: ["unknown-version"],
    }),
    async (request, reply) => {
      const number = Number(request.params.version);
      const stored = await readVersion(options, number);
      const document = await readDocument(stored.document, new TimeSlice());
      const { dryRun, message = `roll back to version ${number}` } = changeOptionsOf(request);
      const result = await options.configuration.apply({
        author: callerOf(request).name,
        kind: "rollback",
        ifMatch: ifMatchOf(request),
        dryRun,
        message,
        edit: () => document,
      });
      return sendApplied(reply, result);
    },
  );
}

async function readVersion(options: AdministrationOptions, version: number): Promise<StoredVersion> {
  const stored = await repositoryOf(options).read(version);
  if (stored !== undefined) return stored;
  throw new ServiceError("unknown-version", `there is no version ${version}`);
}

function shown({ version, author, message, kind, createdAtMs, diff }: VersionSummary) {
  const createdAt = new Date(createdAtMs).toISOString();
  return { version, author, message, kind, createdAt, summary: summaryOf(diff) };
}
