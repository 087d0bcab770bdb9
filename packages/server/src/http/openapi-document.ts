/**
 * Finishes the OpenAPI document that Fastify's plugin generates from the routes: what applies to many routes is written once, here.
 * In: the document with each route's own schemas. Out: the same, plus
 *   a name (operationId) for every operation,
 *   an example request and answer where one helps,
 *   every titled schema as a component of that name,
 *   the errors that an operation can return, as `application/problem+json`,
 *   the token that it requires.
 * Pure.
 */
import type { ErrorCode } from "../errors.js";
import { examples } from "./openapi-examples.js";
import { operationName } from "./openapi-names.js";
import { publishSchemas } from "./openapi-schemas.js";
import { anyErrors, bodyErrors, problemResponses } from "./problem-schema.js";

interface Content {
  content?: Record<string, Record<string, unknown>>;
}

interface Operation {
  operationId?: string;
  tags?: readonly string[];
  requestBody?: Content;
  security?: readonly Record<string, readonly string[]>[];
  responses?: Record<string, Content>;
}

export interface OpenApiDocument {
  paths?: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, unknown>; [more: string]: unknown };
}

interface DocumentOptions {
  /** Whether the data plane requires a token. */
  readonly asksForToken: boolean;
}

/** The methods that OpenAPI 3.1 can describe. */
const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

export function isDocumented(method: string): boolean {
  return METHODS.includes(method.toLowerCase());
}

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
      .filter(([method]) => isDocumented(method))
      .map(([method, operation]) => [
        method,
        publishSchemas(finishOperation(operation, { method, path }, options), schemas),
      ]);
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
  const { request, answer } = examples[operationId] ?? {};
  const { requestBody, responses = {} } = operation;
  return {
    ...operation,
    operationId,
    ...security,
    ...(requestBody && { requestBody: withExample(requestBody, request) }),
    responses: {
      ...responses,
      ...(responses[200] && { 200: withExample(responses[200], answer) }),
      ...errorsOf(operation, options),
    },
  };
}

function withExample(described: Content, example: unknown): Content {
  const json = described.content?.["application/json"];
  if (json === undefined || example === undefined) return described;
  return { ...described, content: { ...described.content, "application/json": { ...json, example } } };
}

function isDataPlane({ tags = [] }: Operation): boolean {
  return ["checks", "leases", "reservations", "gateways"].some((tag) => tags.includes(tag));
}

function errorsOf(operation: Operation, { asksForToken }: DocumentOptions): Record<string, Content> {
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
