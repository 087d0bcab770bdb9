/**
 * Finishes the OpenAPI document that Fastify's plugin makes of the routes: what holds for many routes is said once, here.
 * In: the document with each route's own schemas. Out: the same with
 *   a name (operationId) for every operation,
 *   every schema that has a title as a component of that name,
 *   the errors that an operation can answer, as `application/problem+json`,
 *   the token that it asks for.
 * Pure.
 */
import type { ErrorCode } from "../errors.js";
import { anyErrors, bodyErrors, problemResponses } from "./problem-schema.js";

interface Operation {
  operationId?: string;
  tags?: readonly string[];
  requestBody?: unknown;
  security?: readonly Record<string, readonly string[]>[];
  responses?: Record<string, unknown>;
}

export interface OpenApiDocument {
  paths?: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, unknown>; [more: string]: unknown };
}

interface DocumentOptions {
  /** Whether the data plane asks for a token. */
  readonly asksForToken: boolean;
}

/** Those that OpenAPI 3.1 can describe. */
const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
const byTag: Readonly<Record<string, readonly ErrorCode[]>> = {
  checks: [...anyErrors, "too-complex", "store-unavailable"],
  leases: [...anyErrors, "store-unavailable"],
  reservations: [...anyErrors, "store-unavailable"],
  gateways: [...anyErrors, "too-complex"],
};

export function finishDocument<T extends OpenApiDocument>(document: T, options: DocumentOptions): T {
  const schemas: Record<string, unknown> = {};
  const paths: OpenApiDocument["paths"] = {};
  for (const [path, operations] of Object.entries(document.paths ?? {})) {
    const finished = Object.entries(operations)
      .filter(([method]) => METHODS.includes(method))
      .map(([method, operation]) => [method, hoisted(finishOperation(operation, { method, path }, options), schemas)]);
    paths[path] = Object.fromEntries(finished);
  }
  return { ...document, paths, components: { ...document.components, schemas } };
}

function finishOperation(
  operation: Operation,
  { method, path }: { method: string; path: string },
  options: DocumentOptions,
): Operation {
  const { operationId = operationName(method, path) } = operation;
  const security = isDataPlane(operation) ? { security: options.asksForToken ? [{ apiToken: [] }] : [] } : {};
  return {
    ...operation,
    operationId,
    ...security,
    responses: { ...operation.responses, ...errorsOf(operation, options) },
  };
}

function isDataPlane({ tags = [] }: Operation): boolean {
  return ["checks", "leases", "reservations", "gateways"].some((tag) => tags.includes(tag));
}

/** `get /admin/v1/rules/{id}` becomes `getRulesId`. */
function operationName(method: string, path: string): string {
  const words = path
    .replace(/^\/(admin\/)?v1\//, "")
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== "");
  return method + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
}

function errorsOf(operation: Operation, { asksForToken }: DocumentOptions): Record<string, unknown> {
  const { tags = [], requestBody, responses = {} } = operation;
  const isOurs = isDataPlane(operation);
  const codes = [
    ...tags.flatMap((tag) => byTag[tag] ?? []),
    ...(isOurs && asksForToken ? (["unauthorized"] as const) : []),
    ...(isOurs && requestBody !== undefined ? bodyErrors : []),
  ];
  return Object.fromEntries(
    Object.entries(problemResponses(codes)).filter(([status]) => !Object.hasOwn(responses, status)),
  );
}

/** A copy in which schemas that have a title are references; they themselves go into `schemas`. */
function hoisted<T>(value: T, schemas: Record<string, unknown>): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => hoisted(one, schemas)) as T;
  const copy = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, hoisted(one, schemas)]));
  const { title } = copy as { title?: unknown };
  if (typeof title !== "string" || !isSchema(copy)) return copy as T;
  schemas[title] ??= copy;
  return { $ref: `#/components/schemas/${title}` } as T;
}

function isSchema(value: Readonly<Record<string, unknown>>): boolean {
  return ["type", "anyOf", "enum", "$ref"].some((name) => Object.hasOwn(value, name));
}
