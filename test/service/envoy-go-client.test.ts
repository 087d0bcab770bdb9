/** The gRPC port asked by gRPC for Go. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import protobuf from "protobufjs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadProto } from "../../packages/server/src/enforcement/envoy/load-proto.js";
import { SERVICE_NAME } from "../../packages/server/src/enforcement/envoy/message-codec.js";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { type Json, type RunningService, startTestService } from "./running-service.js";

const root = loadProto(["envoy/service/ratelimit/v3/rls.proto"]);
const requestType = root.lookupType("envoy.service.ratelimit.v3.RateLimitRequest");
const responseType = root.lookupType("envoy.service.ratelimit.v3.RateLimitResponse");

const described = loadProto([
  "envoy/service/ratelimit/v3/rls.proto",
  "envoy/service/rate_limit_quota/v3/rlqs.proto",
  "grpc/health/v1/health.proto",
]);

/** Those of our own protos; map entries are protoc's to make. */
function messagesOf(space: protobuf.NamespaceBase): protobuf.Type[] {
  return space.nestedArray.flatMap((one) => [
    ...(one instanceof protobuf.Type && !one.fullName.startsWith(".google.") ? [one] : []),
    ...(one instanceof protobuf.Namespace ? messagesOf(one) : []),
  ]);
}

describe.skipIf(whyMissing("grpcClient")).each(["own", "grpc-js"])(
  "a client in Go over the transport %s",
  (transport) => {
    let service: RunningService;
    beforeAll(async () => {
      service = await startTestService({
        rules: [{ id: "by-user", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1h" }],
        settings: { "grpc-transport": transport },
      });
    });
    afterAll(() => service.close());

    const ask = async (...args: string[]): Promise<string> => {
      const { stdout } = await promisify(execFile)(components.grpcClient.find()!, [service.grpc, ...args]);
      return stdout.trim();
    };

    test("lists the services and asks for their health", async () => {
      expect((await ask("list")).split("\n")).toEqual(expect.arrayContaining([SERVICE_NAME, "grpc.health.v1.Health"]));
      expect([await ask("check", ""), await ask("check", "ratelimit")]).toEqual(["SERVING", "SERVING"]);
      await expect(ask("check", "other")).rejects.toThrow("NotFound");
    });

    test("reads the descriptors of every message by reflection, as grpcurl does", async () => {
      expect(messagesOf(described).length).toBeGreaterThan(20);
      for (const type of messagesOf(described)) {
        const fields = type.fieldsArray.map(({ id, name }) => `${id} ${name}`);
        const lines = (await ask("describe", type.fullName.slice(1))).split("\n").filter((line) => line !== "");
        const told = lines
          .map((line) => line.split(" "))
          .map(([id, name]) => `${id} ${protobuf.util.camelCase(name!)}`);
        expect(told.sort(), type.fullName).toEqual(fields.sort());
      }
      await expect(ask("describe", "envoy.Nothing")).rejects.toThrow();
    });

    test("gets decisions", async () => {
      const decide = async (request: object): Promise<Json> => {
        const bytes = Buffer.from(requestType.encode(requestType.fromObject(request)).finish());
        const answer = Buffer.from(await ask("call", `/${SERVICE_NAME}/ShouldRateLimit`, bytes.toString("hex")), "hex");
        return responseType.toObject(responseType.decode(answer), { enums: String });
      };
      const request = { domain: "d", descriptors: [{ entries: [{ key: "user", value: "42" }] }] };
      const answers = [await decide(request), await decide({ ...request, hitsAddend: 1 }), await decide(request)];
      expect(answers.map(({ overallCode }) => overallCode)).toEqual(["OK", "OK", "OVER_LIMIT"]);
      expect(answers[0].statuses[0].currentLimit).toMatchObject({ requestsPerUnit: 2, unit: "HOUR" });
      await expect(decide({ domain: "d" })).rejects.toThrow("InvalidArgument");
    });
  },
);
