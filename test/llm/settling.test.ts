/** What a call holds, and what it is charged in the end, however it ends: exact figures under rules that give nothing back within the test. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type FakeLlm, startFakeLlm } from "../harness/fake-llm.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { type Json, postJson, type RunningService, startTestService } from "../service/running-service.js";

const LIMIT = 1_000_000;
const counted = (id: string, cost: string, estimate: Rule["estimate"]): Rule => ({
  id,
  key: ["user"],
  algorithm: "rolling-window",
  limit: LIMIT,
  window: "1d",
  cost: { attribute: cost },
  ...(estimate !== undefined && { estimate }),
});
const rules: Rule[] = [
  { id: "requests", key: ["user"], algorithm: "rolling-window", limit: LIMIT, window: "1d" },
  counted("prompt", "prompt_tokens", { attribute: "estimated_prompt_tokens", default: 100 }),
  counted("completion", "completion_tokens", { attribute: "max_tokens", default: 300 }),
  counted("money", "cost_microdollars", { attribute: "estimated_cost_microdollars", default: 50 }),
  { id: "streams", match: { stream: true }, key: ["user"], algorithm: "concurrency", limit: 5 },
];
const files = {
  "attributes.yaml": "attributes: { user: { header: x-user } }\n",
  "prices.yaml": "models: { fake-*: { prompt: 1, completion: 10 } }\n",
};
const messages = [{ role: "user", content: "three short words" }];
/** `role`, `user`, `content` and three words. */
const PROMPT = 6;

let fake: FakeLlm;
beforeAll(async () => {
  fake = await startFakeLlm();
});
afterAll(() => fake.close());

/** Units used under each rule by a user. */
async function used(service: RunningService, user: string): Promise<Record<string, number>> {
  const attributes = { user, stream: true };
  const { body } = await postJson(`${service.http}/v1/peek`, { attributes, cost: 0 });
  return Object.fromEntries(body.checks.map((check: Json) => [check.rule, check.limit - check.remaining]));
}

async function untilUsed(service: RunningService, user: string, expected: Record<string, number>): Promise<void> {
  // Settled behind the response. The wait ends by the figures alone; wrong ones are shown after many looks.
  for (let looks = 0; ; looks++) {
    const seen = await used(service, user);
    const isSettled = Object.entries(expected).every(([rule, units]) => seen[rule] === units);
    if (isSettled || looks > 400) {
      expect(seen).toMatchObject(expected);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const chat = "/v1/chat/completions";
const post = (service: RunningService, user: string, body: object, path = chat): Promise<Response> =>
  fetch(service.proxy + path, { method: "POST", headers: { "x-user": user }, body: JSON.stringify(body) });

/** The vendor breaks off in the middle, once the client has what came before: half of the tokens. */
async function readUntilCut(
  service: RunningService,
  { user, body, path = chat }: { user: string; body: { model: string; [field: string]: unknown }; path?: string },
): Promise<void> {
  const half = Number(/\d+$/.exec(body.model)![0]) / 2;
  let breakOff: () => void = () => undefined;
  fake.script.push({
    cut: true,
    hold: (token) => (token < half ? Promise.resolve() : new Promise((resolve) => (breakOff = resolve))),
  });
  const reader = (await post(service, user, body, path)).body!.getReader();
  let text = "";
  while (text.split("word").length <= half) text += Buffer.from((await reader.read()).value!).toString();
  breakOff();
  await expect(reader.read()).rejects.toThrow();
}

interface Stage {
  readonly service: RunningService;
  readonly redis: RedisServer | undefined;
}

async function startStage(store: "memory" | "redis", settings: Record<string, string> = {}): Promise<Stage> {
  const redis = store === "redis" ? await startRedis() : undefined;
  const service = await startTestService({
    rules,
    files,
    settings: {
      attributes: "attributes.yaml",
      "usage-prices": "prices.yaml",
      upstream: fake.url,
      usage: "openai",
      // A test is no place to find out how fast the machine is.
      "store-deadline": "10s",
      ...(redis && { store: redis.url }),
      ...settings,
    },
  });
  return { service, redis };
}

describe.each(["memory", "redis"] as const)("on %s", (store) => {
  describe.skipIf(store === "redis" && whyMissing("redis"))("a call", () => {
    let stage: Stage;
    beforeAll(async () => {
      stage = await startStage(store);
    });
    afterAll(async () => {
      await stage.service.close();
      await stage.redis?.stop();
    });

    test("is charged what its answer reports", async () => {
      await (await post(stage.service, "json", { model: "fake-7", messages, max_tokens: 500 })).text();
      const money = PROMPT + 70;
      await untilUsed(stage.service, "json", { requests: 1, prompt: PROMPT, completion: 7, money, streams: 0 });
    });

    test("holds its bound while it runs, and is charged what its stream reports", async () => {
      let release: () => void = () => undefined;
      fake.script.push({ hold: (i) => (i === 0 ? new Promise((resolve) => (release = resolve)) : Promise.resolve()) });
      const answer = await post(stage.service, "stream", { model: "fake-7", messages, max_tokens: 40, stream: true });
      // Four bytes of text a token: "fake-7", the role and the content.
      const estimate = Math.ceil((6 + 4 + 17) / 4);
      const money = estimate + 400;
      expect(await used(stage.service, "stream")).toMatchObject({
        prompt: estimate,
        completion: 40,
        money,
        streams: 1,
      });
      release();
      await answer.text();
      await untilUsed(stage.service, "stream", { prompt: PROMPT, completion: 7, money: PROMPT + 70, streams: 0 });
    });

    test("that the vendor refuses costs its request and no token", async () => {
      fake.script.push({ status: 500 });
      await (await post(stage.service, "error", { model: "fake-7", messages })).text();
      await untilUsed(stage.service, "error", { requests: 1, prompt: 0, completion: 0, money: 0 });
    });

    test("without usage is charged by its text", async () => {
      fake.script.push({ noUsage: true });
      await (await post(stage.service, "silent", { model: "fake-8", messages, stream: true })).text();
      // "word " eight times: 40 bytes.
      await untilUsed(stage.service, "silent", { prompt: 7, completion: 10 });
    });

    test("whose client leaves is charged what had come", async () => {
      let held: () => void = () => undefined;
      const reached = new Promise<void>((resolve) => (held = resolve));
      fake.script.push({
        hold: (token) => {
          if (token < 4) return Promise.resolve();
          held();
          return new Promise(() => undefined);
        },
      });
      const headers = { "x-user": "leaves" };
      const call = httpRequest(stage.service.proxy + chat, { method: "POST", headers }).on("error", () => undefined);
      call.end(JSON.stringify({ model: "fake-9", messages, max_tokens: 900, stream: true }));
      const [answer] = (await once(call, "response")) as [IncomingMessage];
      let text = "";
      answer
        .on("error", () => undefined)
        .on("data", (chunk) => {
          text += chunk;
        });
      await reached;
      while (text.split("word").length < 5) await once(answer, "data");
      answer.destroy();
      // Four tokens of "word ": 20 bytes.
      await untilUsed(stage.service, "leaves", { prompt: 7, completion: 5, streams: 0 });
    });

    test("whose client leaves before the answer begins is charged its prompt", async () => {
      fake.script.push({ hold: () => new Promise(() => undefined) });
      const before = fake.calls.length;
      const headers = { "x-user": "early" };
      const call = httpRequest(`${stage.service.proxy}/slow`, { method: "POST", headers }).on("error", () => undefined);
      call.end(JSON.stringify({ model: "fake-9", messages, wait: true }));
      while (fake.calls.length === before) await new Promise((resolve) => setTimeout(resolve, 5));
      call.destroy();
      await untilUsed(stage.service, "early", { prompt: 7, completion: 0 });
    });

    test("whose vendor breaks off is charged what had come", async () => {
      await readUntilCut(stage.service, { user: "cut", body: { model: "fake-8", messages, stream: true } });
      await untilUsed(stage.service, "cut", { prompt: 7, completion: 5 });
    });

    test("that costs more than it held is charged all of it", async () => {
      // The fake ignores a bound that is no whole number; what was held is what was learned or the default.
      await (await post(stage.service, "over", { model: "fake-2000", messages, max_tokens: "1" })).text();
      await untilUsed(stage.service, "over", { completion: 2_000, money: PROMPT + 20_000 });
    });
  });
});

test("a prompt is counted by the tokenizer that is given; by its bytes where that fails", async () => {
  const tokenizer =
    "export const countTokens = ({ model, body }) => { if (model === 'fake-2') throw 1; return body.length * 100; };";
  await using service = await startTestService({
    rules,
    files: { ...files, "tokenizer.mjs": tokenizer },
    settings: {
      attributes: "attributes.yaml",
      upstream: fake.url,
      usage: "openai",
      "usage-tokenizer": "tokenizer.mjs",
    },
  });
  for (const [user, model] of [
    ["own", "fake-1"],
    ["bytes", "fake-2"],
  ] as const) {
    fake.script.push({ noUsage: true });
    await (await post(service, user, { model, messages })).text();
  }
  await untilUsed(service, "own", { prompt: 100 * JSON.stringify({ model: "fake-1", messages }).length });
  await untilUsed(service, "bytes", { prompt: 7 });
});

test("Anthropic's stream is charged what it reports, and by its text where it breaks off", async () => {
  await using service = await startTestService({
    rules,
    files,
    settings: { attributes: "attributes.yaml", upstream: fake.url, usage: "anthropic" },
  });
  const body = { model: "fake-12", messages, max_tokens: 100, stream: true };
  await (await post(service, "whole", body, "/v1/messages")).text();
  await untilUsed(service, "whole", { prompt: PROMPT, completion: 12 });
  await readUntilCut(service, { user: "half", body, path: "/v1/messages" });
  // Six tokens of "word ": 30 bytes.
  await untilUsed(service, "half", { prompt: PROMPT, completion: 8 });
});

test("without --usage no cost is read, and what was held stands", async () => {
  await using service = await startTestService({
    rules,
    files,
    settings: { attributes: "attributes.yaml", upstream: fake.url },
  });
  await (await post(service, "plain", { model: "fake-1", messages })).text();
  await untilUsed(service, "plain", { requests: 1, prompt: 100, completion: 300 });
});

test("under overrun: finish a stream that uses more than was held holds more while it runs", async () => {
  await using service = await startTestService({
    rules: [counted("completion", "completion_tokens", { default: 10 })],
    files,
    settings: { attributes: "attributes.yaml", upstream: fake.url, usage: "openai" },
  });
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  fake.script.push({ hold: (token) => (token < 100 ? Promise.resolve() : released) });
  const answer = await post(service, "more", { model: "fake-500", messages, stream: true });
  // 100 tokens of "word " are 125 by their bytes.
  await expect
    .poll(async () => (await used(service, "more")).completion, { timeout: 30_000 })
    .toBeGreaterThanOrEqual(125);
  release();
  await answer.text();
  await untilUsed(service, "more", { completion: 500 });
});

test("a vendor that cannot be reached, or hangs up without an answer, costs the request and no token", async () => {
  const hangsUp = createTcpServer((socket) => void socket.once("data", () => socket.destroy()));
  await once(hangsUp.listen(0, "127.0.0.1"), "listening");
  const { port } = hangsUp.address() as AddressInfo;
  await using service = await startTestService({
    rules,
    files,
    settings: { attributes: "attributes.yaml", upstream: `http://127.0.0.1:${port}`, usage: "openai" },
  });
  const body = { model: "fake-7", messages, max_tokens: 40 };
  expect((await post(service, "hung-up", body)).status).toBe(502);
  await untilUsed(service, "hung-up", { requests: 1, prompt: 0, completion: 0, money: 0, streams: 0 });
  hangsUp.close();
  expect((await post(service, "absent", { ...body, stream: true })).status).toBe(502);
  await untilUsed(service, "absent", { requests: 1, prompt: 0, completion: 0, money: 0, streams: 0 });
});

test("a vendor that is silent for --upstream-timeout is 504 in its own shape, and costs the prompt, as if the client had left", async () => {
  const { service } = await startStage("memory", { "upstream-timeout": "200ms" });
  const answer = await post(service, "silent", { model: "fake-1", messages, wait: true });
  const { error } = (await answer.json()) as Json;
  expect([answer.status, error.code]).toEqual([504, "upstream_silent"]);
  await untilUsed(service, "silent", { requests: 1, prompt: 7, completion: 0, money: 7 });
  await service.close();
});

test("under overrun: stop a stream is ended where the limit has no room for it", async () => {
  const stopping: Rule = {
    ...counted("completion", "completion_tokens", { default: 10, overrun: "stop" }),
    limit: 50,
  };
  await using service = await startTestService({
    rules: [stopping],
    files,
    settings: { attributes: "attributes.yaml", upstream: fake.url, usage: "openai" },
  });
  // 100 tokens of "word " are 125 by their bytes; then the vendor waits, and would do so for ever.
  fake.script.push({ hold: (token) => (token < 100 ? Promise.resolve() : new Promise(() => undefined)) });
  const answer = await post(service, "stops", { model: "fake-500", messages, stream: true });
  await expect(answer.text()).rejects.toThrow();
  await untilUsed(service, "stops", { completion: 50 });
});
