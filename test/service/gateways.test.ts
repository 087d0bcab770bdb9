/** forward-auth behind real gateways, with the configurations that examples/ holds. */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import type { ServerProcess } from "../harness/server-process.js";
import { examples, gateways, startGateway } from "./gateway.js";
import { type LoadAnswer, LoadConnections } from "./load-connections.js";
import { type RunningService, startTestService } from "./running-service.js";

const rules: Rule[] = [
  {
    id: "per-user",
    key: ["user"],
    match: { path: "/v1/**", method: "GET" },
    algorithm: "fixed-window",
    limit: 2,
    window: "1d",
  },
  {
    id: "per-route",
    key: ["route"],
    match: { route: "/v1/orders/{id}" },
    algorithm: "fixed-window",
    limit: 3,
    window: "1d",
  },
  { id: "per-address", key: ["ip"], match: { path: "/address" }, algorithm: "fixed-window", limit: 1, window: "1d" },
  { id: "load", key: ["tenant"], algorithm: "rolling-window", limit: 777, window: "1d", storage: "packed" },
];

describe.each(gateways)("%s", (gateway) => {
  describe.skipIf(whyMissing(gateway))("asks before it passes a request on", () => {
    let app: Server;
    let service: RunningService;
    let server: ServerProcess;
    let url: string;
    const seen: { path: string; forwardedFor: string | undefined }[] = [];

    beforeAll(async () => {
      app = createServer((request, response) => {
        seen.push({ path: request.url!, forwardedFor: request.headers["x-forwarded-for"] as string | undefined });
        response.writeHead(request.url === "/forbidden" ? 403 : 200, { "x-app": "yes" }).end("from the app");
      });
      await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
      const attributes = readFileSync(join(examples, "attributes", "attributes.yaml"), "utf8");
      service = await startTestService({
        rules,
        files: { "attributes.yaml": attributes },
        settings: { attributes: "attributes.yaml" },
      });
      const port = await freePort();
      url = `http://127.0.0.1:${port}`;
      server = await startGateway(gateway, {
        port,
        app: (app.address() as AddressInfo).port,
        sluice: Number(new URL(service.http).port),
      });
    });
    afterAll(async () => {
      await server?.stop();
      await service?.close();
      app?.close();
    });

    const get = (path: string, headers: Record<string, string> = {}) => fetch(url + path, { headers });

    test("allowed requests reach the application and tell what is left", async () => {
      const answer = await get("/v1/things", { "x-user": "ann" });
      expect([answer.status, await answer.text(), answer.headers.get("x-app")]).toEqual([200, "from the app", "yes"]);
      // Traefik hands the fields of an allowed request to the application, not to the client.
      if (gateway === "traefik") return;
      expect(answer.headers.get("ratelimit")).toMatch(/^"per-user";r=1;t=\d+$/);
      expect(answer.headers.get("ratelimit-policy")).toBe('"per-user";q=2;w=86400');
    });

    test("where no rule applies there are no fields, not even empty ones or a client's own", async () => {
      const answer = await get("/elsewhere", { ratelimit: "mine", "ratelimit-policy": "mine" });
      expect(answer.status).toBe(200);
      expect([answer.headers.get("ratelimit"), answer.headers.get("ratelimit-policy")]).toEqual([null, null]);
    });

    test("refused requests get 429 with Retry-After and a problem, and do not reach it", async () => {
      await get("/v1/things", { "x-user": "bob" });
      await get("/v1/things", { "x-user": "bob" });
      const before = seen.length;
      const answer = await get("/v1/things", { "x-user": "bob" });
      expect(answer.status).toBe(429);
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(answer.headers.get("ratelimit")).toMatch(/^"per-user";r=0;t=\d+$/);
      expect(answer.headers.get("ratelimit-policy")).toBe('"per-user";q=2;w=86400');
      expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/);
      expect(await answer.json()).toMatchObject({ status: 429, type: expect.stringContaining("quota-exceeded") });
      expect(seen.length).toBe(before);
    });

    test("the path, the method and the route are those of the client", async () => {
      for (const id of [1, 2, 3]) expect((await get(`/v1/orders/${id}?x=y`)).status).toBe(200);
      expect((await get("/v1/orders/4")).status).toBe(429);
      expect(
        (await fetch(`${url}/v1/things`, { method: "POST", body: "data", headers: { "x-user": "bob" } })).status,
      ).toBe(200);
    });

    test("what a client writes into forwarded headers is not believed", async () => {
      const forged = {
        "x-forwarded-for": "203.0.113.9",
        "x-forwarded-uri": "/elsewhere",
        "x-forwarded-method": "DELETE",
      };
      expect((await get("/address", forged)).status).toBe(200);
      expect((await get("/address", { ...forged, "x-forwarded-for": "203.0.113.10" })).status).toBe(429);
    });

    test("the application's own 403 is passed on", async () => {
      const answer = await get("/forbidden");
      expect([answer.status, await answer.text()]).toEqual([403, "from the app"]);
    });

    test("2 000 requests for 777 admit 777", async () => {
      const connections = new LoadConnections({ url, count: 16 });
      const admitted: LoadAnswer[] = [];
      let next = 0;
      const reachedBefore = seen.length;
      const startedMs = performance.now();
      await Promise.all(
        Array.from({ length: 16 }, async () => {
          while (next++ < 2_000) {
            const answer = await connections.send("GET", "/load", { headers: "x-tenant: t\r\n" });
            expect([200, 429]).toContain(answer.status);
            if (answer.status === 200) admitted.push(answer);
          }
        }),
      );
      connections.close();
      const reached = seen.length - reachedBefore;
      console.log(
        `${gateway}: 2 000 requests in ${((performance.now() - startedMs) / 1000).toFixed(2)} s, ${admitted.length} admitted`,
      );
      // A miscount explains itself: which answers the application did not make, which were not counted or counted alike, and the log.
      const why = (): string => [...oddAnswers(admitted), server.log().slice(-2000)].join("\n");
      expect({ admitted: admitted.length, reached }, why()).toEqual({ admitted: 777, reached: 777 });
    });
  });
});

/** Answers to admitted requests that are not what one of 777 is: from the application, with a remaining count that no other has. */
function oddAnswers(answers: readonly LoadAnswer[]): string[] {
  const told = new Map<string, number>();
  const odd: string[] = [];
  for (const { headers, body } of answers) {
    const field = String(headers.ratelimit);
    const remaining = /^"load";r=(\d+)/.exec(field)?.[1] ?? field;
    told.set(remaining, (told.get(remaining) ?? 0) + 1);
    if (body !== "from the app") odd.push(`not from the application: ${JSON.stringify({ headers, body })}`);
  }
  for (const [remaining, times] of told) if (times > 1) odd.push(`remaining ${remaining}: ${times} times`);
  return odd;
}
