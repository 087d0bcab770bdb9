/** Very many limits come in force while requests are decided: by the old ones until the new ones are whole, without a stall. */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connectEnvoy, descriptor } from "./envoy-client.js";
import { startServiceProcess } from "./running-service.js";
import { startXdsServer, units } from "./xds-server.js";

/** Each is one after the other: how many are answered by limits of `before`, and whether any answer is of neither. */
async function answersUntil(grpc: string, before: number, after: number): Promise<number> {
  const client = connectEnvoy(grpc);
  let answered = 0;
  for (;;) {
    const response = await client.shouldRateLimit({ domain: "d", descriptors: [descriptor({ user: "u1" })] });
    const limit = response.statuses[0].currentLimit.requestsPerUnit;
    if (limit === after) break;
    expect(limit).toBe(before);
    answered++;
  }
  client.close();
  return answered;
}

test("20 000 limits of a control plane", async () => {
  await using plane = await startXdsServer();
  const limits = (count: number, requestsPerUnit: number) => ({
    domain: "d",
    descriptors: Array.from({ length: count }, (_, i) => ({
      key: "user",
      value: `u${i}`,
      rateLimit: { unit: units.day, requestsPerUnit },
    })),
  });
  plane.send("v1", [limits(2, 1_000_000)]);
  const service = await startServiceProcess({
    settings: { "envoy-xds": plane.address, "envoy-xds-node-id": "test-node" },
  });
  await plane.received(({ versionInfo }) => versionInfo === "v1");
  plane.send("v2", [limits(20_000, 2_000_000)]);
  const answered = await answersUntil(service.grpc, 1_000_000, 2_000_000);
  expect(answered).toBeGreaterThan(20);
  await plane.received(({ versionInfo }) => versionInfo === "v2");
  expect(await service.end()).toBe(0);
});

test("1 500 limits of a folder", async () => {
  const text = (count: number, perDay: number): string =>
    `domain: d\ndescriptors:\n${Array.from({ length: count }, (_, i) => `  - { key: user, value: u${i}, rate_limit: { unit: day, requests_per_unit: ${perDay} } }\n`).join("")}`;
  const service = await startServiceProcess({
    files: { "limits/d.yaml": text(2, 1_000_000) },
    settings: { "envoy-config": "limits" },
  });
  const draft = join(service.folder, "draft");
  writeFileSync(draft, text(1_500, 2_000_000));
  renameSync(draft, join(service.folder, "limits", "d.yaml"));
  expect(await answersUntil(service.grpc, 1_000_000, 2_000_000)).toBeGreaterThan(20);
  expect(await service.end()).toBe(0);
});
