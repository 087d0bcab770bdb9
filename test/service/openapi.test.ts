/** The OpenAPI document of a running service: what every operation of it must have. */
import { Compile } from "typebox/schema";
import { expect, test } from "vitest";
import { type Json, startTestService } from "./running-service.js";

const TOKEN = "the-one-token-of-this-test";

test("every operation has a name of its own, every schema in common is a component, errors are problem+json", async () => {
  await using service = await startTestService({ settings: { "api-token": TOKEN } });
  const document = (await (await fetch(`${service.http}/openapi.json`)).json()) as Json;
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item as Json).map(([method, operation]) => ({ at: `${method} ${path}`, ...(operation as Json) })),
  );
  const names = operations.map(({ operationId }) => operationId);
  expect(names.every((name) => /^[a-z]\w+$/.test(name))).toBe(true);
  expect(new Set(names).size).toBe(names.length);
  for (const { at, responses, tags, security } of operations) {
    for (const [status, response] of Object.entries<Json>(responses)) {
      if (
        !/^[45]/.test(status) ||
        tags.includes("health") ||
        response.content?.["application/json"]?.schema.$ref?.endsWith("RateLimitResponse")
      )
        continue;
      expect(Object.keys(response.content), `${at} ${status}`).toEqual(["application/problem+json"]);
    }
    if (!tags.includes("health")) expect(security, at).toBeDefined();
  }
  expect(Object.keys(document.components.securitySchemes)).toEqual(["apiToken", "adminToken", "session"]);
  expect(Object.keys(document.components.schemas)).toEqual(
    expect.arrayContaining(["Decision", "Problem", "Rule", "CheckRequest"]),
  );
});

test("whole numbers have 64 bits, choices are enums, and no schema of an answer is without a name", async () => {
  await using service = await startTestService();
  const document = (await (await fetch(`${service.http}/openapi.json`)).json()) as Json;
  const found: string[] = [];
  const visit = (value: unknown, at: string): void => {
    if (typeof value !== "object" || value === null) return;
    const { type, format, anyOf, properties } = value as Json;
    if (type === "integer" && format !== "int64") found.push(`${at}: 32 bits`);
    if (Array.isArray(anyOf) && anyOf.every((one: Json) => one.enum?.length === 1)) found.push(`${at}: no enum`);
    const isComponent = /^\/components\/schemas\/\w+$/.test(at);
    if (type === "object" && typeof properties === "object" && !isComponent) {
      // The few schemas of probes belong to one route each, and have no title.
      if (!/^\/paths\/\/(healthz|readyz)/.test(at)) found.push(`${at}: no name`);
    }
    for (const [name, inner] of Object.entries(value)) visit(inner, `${at}/${name}`);
  };
  visit({ paths: document.paths, components: document.components }, "");
  expect(found).toEqual([]);
  for (const name of ["Lease", "AttributeValue", "ExplanationRule"])
    expect(document.components.schemas).toHaveProperty(name);
});

test("the examples are what the schemas describe and what the service accepts", async () => {
  const rules = [{ id: "per-user", key: ["user"], algorithm: "rolling-window", limit: 100, window: "1m" }] as const;
  await using service = await startTestService({ rules: rules.map((rule) => ({ ...rule, key: [...rule.key] })) });
  const document = (await (await fetch(`${service.http}/openapi.json`)).json()) as Json;
  // The schemas refer to `#/components/…`: each is a document of its own that has them.
  const errorsOf = (schema: Json, example: unknown) =>
    Compile({ ...schema, components: document.components } as Json).Errors(example)[1];
  const examples: string[] = [];
  for (const [path, item] of Object.entries<Json>(document.paths)) {
    for (const [method, { requestBody, responses, operationId }] of Object.entries<Json>(item)) {
      const places = [
        [`${method}/requestBody`, requestBody],
        [`${method}/responses/200`, responses[200]],
      ] as const;
      for (const [at, content] of places) {
        const { example, schema } = content?.content?.["application/json"] ?? {};
        if (example === undefined) continue;
        examples.push(operationId);
        expect(errorsOf(schema, example), operationId).toEqual([]);
        // One that is not an object is described by no schema here.
        expect(errorsOf(schema, "text"), operationId).not.toEqual([]);
        // Ids of leases and reservations are made by a service, and those here are none of its own.
        const isMadeUp = /"(lease|reservation)":/.test(JSON.stringify(example));
        if (!at.endsWith("requestBody") || isMadeUp || path.startsWith("/admin")) continue;
        const answer = await fetch(service.http + path, {
          method,
          headers: { "content-type": "application/json" },
          body: JSON.stringify(example),
        });
        expect(answer.status, `${operationId}: ${await answer.text()}`).toBe(200);
      }
    }
  }
  expect(new Set(examples)).toContain("check");
  expect(examples.length).toBeGreaterThan(25);
});
