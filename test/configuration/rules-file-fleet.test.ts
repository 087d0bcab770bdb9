/** Instances whose rules come from files of their own, as containers have them: each counts the versions of its rules from 1. */
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { type Json, postJson, type RunningService, startTestService } from "../service/running-service.js";

const perUser: Rule = { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 5, window: "365d" };
const perPath: Rule = { ...perUser, id: "per-path", key: ["path"] };

describe.skipIf(whyMissing("redis"))("a rolling deployment of other rules", () => {
  let redis: RedisServer;
  let before: RunningService;
  let after: RunningService;
  beforeAll(async () => {
    redis = await startRedis();
    const settings = { store: redis.url };
    before = await startTestService({ rules: [perUser], settings });
    after = await startTestService({ rules: [perUser, perPath], settings });
  });
  afterAll(async () => {
    await before?.close();
    await after?.close();
    await redis?.stop();
  });

  const check = async (service: RunningService, id: string): Promise<Json> => {
    const { status, body } = await postJson(`${service.http}/v1/check`, { attributes: { user: id, path: id }, id });
    return { status, ...(body as Json) };
  };

  test.each([
    ["the old rules first", () => [before, after] as const],
    ["the new rules first", () => [after, before] as const],
  ])("a retry that meets the other rules gets the first decision, and charges nothing: %s", async (id, order) => {
    const [first, later] = order();
    const { remaining, checks } = await check(first, id);
    expect(remaining).toBe(4);
    expect(await check(later, id)).toMatchObject({ status: 200, allowed: true, remaining, checks });
    const { body } = await postJson(`${after.http}/v1/peek`, { attributes: { user: id, path: id }, cost: 0 });
    const left = (body as Json).checks.map((found: Json) => found.remaining);
    expect(left).toEqual([4, first === after ? 4 : 5]);
  });
});
