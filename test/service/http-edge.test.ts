/** The same mistake gets the same answer on the data plane and on the admin API: status, code, remedy, headers. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorKinds } from "../../packages/server/src/errors.js";
import { type Json, type RunningService, startTestService } from "./running-service.js";

const API_TOKEN = "the-one-token-of-this-test";
let service: RunningService;
let adminToken: string;

beforeAll(async () => {
  service = await startTestService({ settings: { "api-token": API_TOKEN } });
  adminToken = readFileSync(service.adminTokenFile!, "utf8").trim();
});
afterAll(async () => {
  await service?.close();
});

interface Plane {
  readonly plane: string;
  readonly path: string;
  readonly method: string;
  readonly largestBytes: number;
  readonly largest: string;
  readonly token: () => string;
}

const planes: readonly Plane[] = [
  {
    plane: "data plane",
    path: "/v1/peek",
    method: "POST",
    largestBytes: 64 * 1024,
    largest: "64 KiB",
    token: () => API_TOKEN,
  },
  {
    plane: "admin API",
    path: "/admin/v1/keys/explain",
    method: "POST",
    largestBytes: 64 * 1024,
    largest: "64 KiB",
    token: () => adminToken,
  },
  {
    plane: "admin API, a document",
    path: "/admin/v1/rules",
    method: "PUT",
    largestBytes: 8 * 2 ** 20,
    largest: "8 MiB",
    token: () => adminToken,
  },
];

describe.each(planes)("$plane", ({ path, method, largestBytes, largest, token }) => {
  async function ask(init: RequestInit & { path?: string } = {}): Promise<{ answer: Response; body: Json }> {
    const { path: other = path, ...rest } = init;
    const headers = { authorization: `Bearer ${token()}`, "content-type": "application/json", ...rest.headers };
    const answer = await fetch(service.http + other, { method, ...rest, headers });
    return { answer, body: (await answer.json()) as Json };
  }

  function expectProblem({ answer, body }: { answer: Response; body: Json }, code: keyof typeof errorKinds): void {
    const { status, remedy } = errorKinds[code];
    expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect({ status: answer.status, ...body }).toMatchObject({ status, code, remedy, type: "about:blank" });
  }

  test("another method is 405 with the methods that are allowed", async () => {
    const told = await ask({ method: "DELETE" });
    expectProblem(told, "method-not-allowed");
    expect(told.answer.headers.get("allow")?.split(", ")).toContain(method);
  });

  test("another path is 404", async () => expectProblem(await ask({ path: `${path}/x/y/z` }), "not-found"));

  test("no token is 401 with the scheme that is expected", async () => {
    const told = await ask({ headers: { authorization: "" } });
    expectProblem(told, "unauthorized");
    expect(told.answer.headers.get("www-authenticate")).toBe('Bearer realm="sluice"');
  });

  test("a body that is too large is 413 and the message names the limit", async () => {
    const told = await ask({ body: " ".repeat(largestBytes + 1) });
    expectProblem(told, "body-too-large");
    expect(told.body.detail).toBe(`body: expected at most ${largest}`);
  });

  test("another type is 415 and the message names the one that came", async () => {
    const told = await ask({ body: "x", headers: { "content-type": "text/csv" } });
    expectProblem(told, "unsupported-media-type");
    expect(told.body.detail).toContain("got text/csv");
  });

  test("bytes that are no UTF-8 are refused, whatever the size of the body", async () => {
    // 0xff is in no UTF-8 text; in a field it would be read as another key.
    const bytesOf = (filler: number): Buffer =>
      Buffer.concat([
        Buffer.from('{"attributes":{"user":"'),
        Buffer.alloc(filler, "a"),
        Buffer.from([0xff]),
        Buffer.from('"}}'),
      ]);
    const sizes = largestBytes > 64 * 1024 ? [1, 70_000] : [1];
    for (const filler of sizes) expectProblem(await ask({ body: bytesOf(filler) }), "invalid-request");
  });

  test("a body that is no JSON is 400", async () => {
    const told = await ask({ body: "{" });
    expectProblem(told, "invalid-request");
    expect(told.body.detail).toMatch(/^body: expected JSON, got /);
  });
});

test("the OpenAPI document explains, for every error status, the codes that come with it", async () => {
  const document = (await (await fetch(`${service.http}/openapi.json`)).json()) as Json;
  expect(document.components.schemas.Problem.properties.code.enum).toEqual(Object.keys(errorKinds));
  const operations = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([method, { responses, tags }]) => ({ at: `${method} ${path}`, responses, tags })),
  );
  const wrong = operations.flatMap(({ at, responses, tags }) =>
    Object.entries<Json>(responses)
      .filter(([status, { content }]) => /^[45]\d\d$/.test(status) && content?.["application/problem+json"])
      // A refusal is for the gateway's client, and has no code of ours.
      .filter(([status]) => !(tags.includes("gateways") && ["429", "503"].includes(status)))
      .filter(([status, { description }]) => {
        const codes = Array.from(
          description.matchAll(/^`([a-z-]+)`: /gm),
          ([, code]) => code as keyof typeof errorKinds,
        );
        return codes.length === 0 || codes.some((code) => errorKinds[code]?.status !== Number(status));
      })
      .map(([status]) => `${at} ${status}`),
  );
  expect(wrong).toEqual([]);
});
