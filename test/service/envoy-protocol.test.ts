/** The wire of Envoy's protocol, by hand from the published field numbers; health; reflection; messages that are none. */
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectEnvoy, type EnvoyClient } from "./envoy-client.js";
import { type RunningService, startTestService } from "./running-service.js";

const SHOULD_RATE_LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/** Field `number`, wire type 2: a length and bytes. */
const bytes = (number: number, content: Buffer | string): Buffer => {
  const body = Buffer.from(content);
  return Buffer.concat([Buffer.from([(number << 3) | 2, body.length]), body]);
};
/** Field `number`, wire type 0: a small number. */
const varint = (number: number, value: number): Buffer => Buffer.from([number << 3, value]);

/** domain = 1, descriptors = 2 { entries = 1 { key = 1, value = 2 }, hits_addend = 3 { value = 1 } }, hits_addend = 3. */
function request(user: string, hits: number): Buffer {
  const entry = Buffer.concat([bytes(1, "user"), bytes(2, user)]);
  const descriptor = bytes(1, entry);
  return Buffer.concat([bytes(1, "any"), bytes(2, descriptor), varint(3, hits)]);
}

describe.each(["own", "grpc-js"])("over the transport %s", (transport) => {
  let service: RunningService;
  let envoy: EnvoyClient;
  beforeAll(async () => {
    service = await startTestService({
      rules: [{ id: "by-user", key: ["user"], algorithm: "fixed-window", limit: 9, window: "1h" }],
      settings: { "grpc-transport": transport },
    });
    envoy = connectEnvoy(service.grpc);
  });
  afterAll(async () => {
    envoy.close();
    await service.close();
  });

  test("a request spelled byte by byte is understood, and its answer is spelled as published", async () => {
    const answer = await envoy.callRaw(SHOULD_RATE_LIMIT, request("42", 4));
    // overall_code = 1: OK.
    expect(answer.subarray(0, 2)).toEqual(Buffer.from([0x08, 0x01]));
    // statuses = 2 { code = 1: OK, current_limit = 2 { requests_per_unit = 1: 9, unit = 2: HOUR, name = 3 }, limit_remaining = 3: 5, ... }
    expect(answer[2]).toBe(0x12);
    const status = answer.subarray(4, 4 + answer[3]!);
    expect(status.subarray(0, 2)).toEqual(Buffer.from([0x08, 0x01]));
    const limit = Buffer.concat([varint(1, 9), varint(2, 3), bytes(3, "by-user")]);
    expect(status.includes(limit.subarray(0, 4)) && status.includes("by-user")).toBe(true);
    expect(status.includes(varint(3, 5))).toBe(true);
    // duration_until_reset = 4.
    expect(status.includes(Buffer.from([0x22]))).toBe(true);
  });

  test("health is told for the server and for ratelimit", async () => {
    for (const name of ["", "ratelimit"]) {
      const answer = await envoy.callRaw(
        "/grpc.health.v1.Health/Check",
        name === "" ? Buffer.alloc(0) : bytes(1, name),
      );
      // status = 1: SERVING.
      expect(answer).toEqual(Buffer.from([0x08, 0x01]));
    }
    await expect(envoy.callRaw("/grpc.health.v1.Health/Check", bytes(1, "other"))).rejects.toMatchObject({
      code: status.NOT_FOUND,
    });
  });

  test("reflection lists the services and describes Envoy's messages", async () => {
    const { Client, credentials } = await import("@grpc/grpc-js");
    const client = new Client(service.grpc, credentials.createInsecure());
    const ask = (message: Buffer) =>
      new Promise<Buffer>((resolve, reject) => {
        const raw = (value: Buffer) => value;
        const call = client.makeBidiStreamRequest(
          "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
          raw,
          raw,
        );
        call.on("data", resolve);
        call.on("error", reject);
        call.write(message);
        call.end();
      });
    // list_services = 7; file_containing_symbol = 4.
    const listed = (await ask(bytes(7, "*"))).toString("latin1");
    expect(listed).toContain("envoy.service.ratelimit.v3.RateLimitService");
    expect(listed).toContain("grpc.health.v1.Health");
    const described = (await ask(bytes(4, "envoy.service.ratelimit.v3.RateLimitService"))).toString("latin1");
    for (const name of ["ShouldRateLimit", "hits_addend", "duration_until_reset"]) expect(described).toContain(name);
    client.close();
  });

  test("a message that is no request of reflection is the caller's mistake, and ends its call alone", async () => {
    const { Client, credentials } = await import("@grpc/grpc-js");
    const client = new Client(service.grpc, credentials.createInsecure());
    const raw = (value: Buffer) => value;
    const call = client.makeBidiStreamRequest("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", raw, raw);
    const ended = new Promise((resolve) => call.on("error", ({ code }: { code: number }) => resolve(code)));
    call.on("data", () => undefined);
    call.write(Buffer.of(0x0a));
    expect(await ended).toBe(transport === "own" ? status.INVALID_ARGUMENT : status.INTERNAL);
    client.close();
    await envoy.callRaw("/grpc.health.v1.Health/Check", Buffer.alloc(0));
  });

  test("truncated and random messages are the caller's mistake, never a failure of the service", async () => {
    const whole = request("fuzz", 1);
    const messages = [
      ...Array.from({ length: whole.length - 1 }, (_, i) => whole.subarray(0, i + 1)),
      ...Array.from({ length: 200 }, (_, seed) => pseudoRandom(seed, 1 + (seed % 60))),
      Buffer.alloc(70_000, 1),
    ];
    const accepted = [status.INVALID_ARGUMENT, status.RESOURCE_EXHAUSTED, "OK"];
    for (const message of messages) {
      const outcome = await envoy.callRaw(SHOULD_RATE_LIMIT, message).then(
        () => "OK",
        (error: { code: number }) => error.code,
      );
      expect(accepted, message.toString("hex").slice(0, 200)).toContain(outcome);
    }
    await expect(envoy.callRaw("/envoy.service.ratelimit.v3.RateLimitService/Other", whole)).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
    });
  });
});

/** The same bytes in every run, so that a failure can be seen again. */
function pseudoRandom(seed: number, length: number): Buffer {
  let state = seed * 2_654_435_761 + 1;
  return Buffer.from(
    Array.from({ length }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return state >>> 24;
    }),
  );
}
