/** What a collector gets over OTLP/HTTP from a real service, and that a service does without one. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { parentOf } from "../../packages/server/src/monitoring/otlp/trace-parent.js";
import { freePort } from "../harness/free-port.js";
import { type Json, postJson, startTestService } from "../service/running-service.js";

const rules = [{ id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1h" }] as const;

async function startCollector() {
  const received: Record<string, Json[]> = { "/v1/metrics": [], "/v1/traces": [] };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      received[request.url!]?.push(JSON.parse(Buffer.concat(chunks).toString()));
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** By name, of the last push. */
    metrics: (): Map<string, Json> => {
      const last = received["/v1/metrics"]!.at(-1);
      const all = last.resourceMetrics.flatMap(({ scopeMetrics }: Json) =>
        scopeMetrics.flatMap((s: Json) => s.metrics),
      );
      return new Map(all.map((metric: Json) => [metric.name, metric]));
    },
    resource: () => valuesOf(received["/v1/metrics"]!.at(-1).resourceMetrics[0].resource.attributes),
    spans: (): Json[] =>
      received["/v1/traces"]!.flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }: Json) => scopeSpans.flatMap(({ spans }: Json) => spans)),
      ),
    text: () => JSON.stringify(received),
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}

function valuesOf(attributes: Json[]): Record<string, Json> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value.arrayValue]),
  );
}

test("a collector gets the metrics of /metrics, and a span of each request that is sampled", async () => {
  const collector = await startCollector();
  const settings = { otlp: collector.url, "trace-share": "1" };
  const service = await startTestService({ rules: rules as never, settings });
  const trace = "0af7651916cd43dd8448eb211c80319c";
  const check = (headers: Record<string, string>) =>
    postJson(`${service.http}/v1/check`, { attributes: { user: "a-secret-user" } }, headers);
  await check({ traceparent: `00-${trace}-b7ad6b7169203331-01` });
  await check({ traceparent: "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00" });
  await check({});
  await service.close();
  try {
    expect(collector.resource()).toMatchObject({ "service.name": "sluice" });
    const checks = collector.metrics().get("sluice_checks_total");
    expect(checks.sum).toMatchObject({ isMonotonic: true, aggregationTemporality: 2 });
    const points = checks.sum.dataPoints.map((point: Json) => [valuesOf(point.attributes).outcome, point.asDouble]);
    expect(points.sort()).toEqual([
      ["allowed", 2],
      ["refused", 1],
    ]);
    const [latency] = collector.metrics().get("sluice_decision_seconds").histogram.dataPoints;
    expect(latency).toMatchObject({ count: 3 });
    expect(latency.bucketCounts.reduce((sum: number, count: number) => sum + Number(count), 0)).toBe(3);
    expect(latency.bucketCounts).toHaveLength(latency.explicitBounds.length + 1);
    expect(collector.metrics().get("sluice_rules").gauge.dataPoints[0].asDouble).toBe(1);
    const spans = collector.spans();
    // The caller of the second said that its trace is not recorded.
    expect(spans).toHaveLength(2);
    const [first, last] = spans;
    expect(first).toMatchObject({ traceId: trace, parentSpanId: "b7ad6b7169203331", name: "sluice.check", kind: 2 });
    expect(Number(first.endTimeUnixNano)).toBeGreaterThanOrEqual(Number(first.startTimeUnixNano));
    expect(Math.abs(Number(first.startTimeUnixNano) / 1e6 - Date.now())).toBeLessThan(120_000);
    expect(last.parentSpanId ?? "").toBe("");
    const attributes = valuesOf(last.attributes);
    expect(attributes).toMatchObject({
      "sluice.transport": "http",
      "sluice.outcome": "refused",
      "sluice.reason": "limit",
    });
    expect(attributes["sluice.violated"].values).toEqual([{ stringValue: "per-user" }]);
    expect(collector.text()).not.toContain("a-secret-user");
  } finally {
    await collector.stop();
  }
});

test("by default one request in a hundred is traced, and none whose caller decided against it", async () => {
  const collector = await startCollector();
  const service = await startTestService({ rules: rules as never, settings: { otlp: collector.url } });
  const requests = Array.from({ length: 20 }, (_, i) => ({ attributes: { user: `${i}` } }));
  for (let i = 0; i < 50; i++) await Promise.all(requests.map((body) => postJson(`${service.http}/v1/check`, body)));
  await service.close();
  await collector.stop();
  // Of 1000 at 1 %: 10 on average; 40 would come once in more runs than there will ever be.
  expect(collector.spans().length).toBeLessThan(40);
});

test("without a collector checks are answered as ever, and the service ends", async () => {
  const settings = { otlp: `http://127.0.0.1:${await freePort()}`, "trace-share": "1" };
  const service = await startTestService({ rules: rules as never, settings });
  for (let i = 0; i < 50; i++) {
    const { status, body } = await postJson(`${service.http}/v1/check`, { attributes: { user: `${i}` } });
    expect([status, body.allowed]).toEqual([200, true]);
  }
  await service.close();
});

test.each([
  ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true],
  ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", false],
  ["cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what-comes", true],
])("the traceparent %s is taken", (header, sampled) => {
  expect(parentOf(header)).toMatchObject({ sampled, context: { traceId: "0af7651916cd43dd8448eb211c80319c" } });
});

test.each([
  undefined,
  "",
  "nonsense",
  "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
  "00-00000000000000000000000000000000-b7ad6b7169203331-01",
  "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
  "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
])("the traceparent %j begins a trace here", (header) => {
  expect(parentOf(header)).toBeUndefined();
});
