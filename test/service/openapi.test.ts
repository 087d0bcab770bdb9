/** The OpenAPI document of a running service: what every operation of it must have. */
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
