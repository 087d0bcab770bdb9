/**
 * examples/llm-gateway in front of the fake vendor, with the vendors' own SDKs as clients: what their users see is what counts.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type FakeLlm, startFakeLlm } from "../harness/fake-llm.js";
import { type Json, postJson, type RunningService, startTestService } from "../service/running-service.js";

const example = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../examples/llm-gateway/${name}`, import.meta.url)), "utf8");

const plans = { free: "hobbyists", team: "acme", scale: "globex" } as const;
type Plan = keyof typeof plans;

async function startExample(vendor: "openai" | "anthropic", upstream: string): Promise<RunningService> {
  const header = vendor === "openai" ? "header: authorization" : "header: x-api-key";
  return await startTestService({
    files: {
      "rules.yaml": example("rules.yaml"),
      "prices.yaml": example("prices.yaml"),
      "attributes.yaml": example("attributes.yaml").replace("header: authorization", header),
    },
    settings: {
      rules: "rules.yaml",
      attributes: "attributes.yaml",
      upstream,
      usage: vendor,
      "usage-headers": vendor,
      "usage-prices": "prices.yaml",
      "upstream-headers": "authorization=Bearer sk-vendor,x-api-key=sk-vendor",
    },
  });
}

/** How the rules stand for a plan's organisation, by their ids. */
async function states(service: RunningService, plan: Plan): Promise<Record<string, Json>> {
  const attributes = { org: plans[plan], plan, stream: true };
  const { body } = await postJson(`${service.http}/v1/peek`, { attributes, cost: 0 });
  return Object.fromEntries(body.checks.map((check: Json) => [check.rule, check]));
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 5));
}

const messages = [{ role: "user" as const, content: "one two three" }];

let fake: FakeLlm;
beforeAll(async () => {
  fake = await startFakeLlm();
});
afterAll(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.script.length = 0;
});

/** A fetch that counts, to see what an SDK really sends. */
function countingFetch(): { fetch: typeof fetch; count: () => number } {
  let sent = 0;
  return {
    fetch: (...args) => {
      sent++;
      return fetch(...args);
    },
    count: () => sent,
  };
}

describe("OpenAI's SDK", () => {
  let service: RunningService;
  const client = (plan: string, options: object = {}) =>
    new OpenAI({ apiKey: `sk-${plan}`, baseURL: `${service.proxy}/v1`, maxRetries: 0, ...options });

  beforeAll(async () => {
    service = await startExample("openai", fake.url);
  });
  afterAll(() => service.close());

  test("a completion, with the limits of the client's plan, the vendor's key and the vendor's host", async () => {
    const { data, response } = await client("team")
      .chat.completions.create({ model: "gpt-5-mini-4", messages, max_completion_tokens: 20 })
      .withResponse();
    expect([data.choices[0]!.message.content, data.usage?.completion_tokens]).toEqual(["word word word word ", 4]);
    const { headers } = response;
    expect(headers.get("x-ratelimit-limit-requests")).toBe("60");
    expect(headers.get("x-ratelimit-limit-input-tokens")).toBe("40000");
    expect(headers.get("x-ratelimit-limit-output-tokens")).toBe("20000");
    expect(headers.get("x-ratelimit-limit-microdollars")).toBe("20000000");
    const seen = fake.calls[0]!.headers;
    expect([seen.authorization, seen.host]).toEqual(["Bearer sk-vendor", new URL(fake.url).host]);
  });

  test("a stream: its texts, and no event that the client did not ask for", async () => {
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    const stream = await client("team").chat.completions.create({ model: "fake-3", messages, stream: true });
    for await (const chunk of stream) chunks.push(chunk);
    expect(fake.calls[0]!.body.stream_options).toEqual({ include_usage: true });
    expect(chunks.every(({ choices }) => choices.length === 1)).toBe(true);
    expect(chunks.map(({ choices }) => choices[0]!.delta.content ?? "").join("")).toBe("word word word ");
  });

  test("a stream whose usage the client asked for has it", async () => {
    const options = { stream: true, stream_options: { include_usage: true } } as const;
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of await client("team").chat.completions.create({ model: "fake-3", messages, ...options }))
      usage = chunk.usage ?? usage;
    expect(usage?.completion_tokens).toBe(3);
  });

  test("embeddings pass", async () => {
    const { data } = await client("team").embeddings.create({ model: "fake", input: "a b", encoding_format: "float" });
    expect(data[0]!.embedding).toEqual([0.25, -0.5]);
  });

  test("the free plan ends after five requests, in an error that the SDK knows; other plans go on", async () => {
    const free = client("free");
    let refused: unknown;
    let passed = -1;
    // The bucket fills while the test runs: on a slow machine a sixth request may pass.
    for (; refused === undefined; passed++) {
      await free.chat.completions.create({ model: "fake-1", messages }).catch((error: unknown) => {
        refused = error;
      });
    }
    expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
    const { status, code, type, message, headers } = refused as InstanceType<typeof OpenAI.RateLimitError>;
    expect([status, code, type]).toEqual([429, "rate_limit_exceeded", "requests"]);
    expect(message).toContain('The quota of "requests" (5 per 1m) is used up.');
    expect(Number(headers!.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(passed).toBeGreaterThanOrEqual(5);
    expect(fake.calls.length).toBe(passed);
    await client("scale").chat.completions.create({ model: "fake-1", messages });
    // Without a known key: the free plan too, but one of its own.
    await client("unknown").chat.completions.create({ model: "fake-1", messages });
    expect(fake.calls.length).toBe(passed + 2);
  });

  test("an abort in the middle of a stream ends the vendor's call", async () => {
    fake.script.push({ hold: (token) => (token < 2 ? Promise.resolve() : new Promise(() => undefined)) });
    const stream = await client("team").chat.completions.create({ model: "fake-9", messages, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]!.delta.content === "word ") break;
    stream.controller.abort();
    await until(async () => fake.calls[0]!.wasCut);
  });

  test("a call that is no JSON, or too large, is an error that the SDK knows", async () => {
    const nested = JSON.parse(`${"[".repeat(300)}${"]".repeat(300)}`);
    const deep = client("team").chat.completions.create({ model: "fake-1", messages: nested });
    await expect(deep).rejects.toThrow(OpenAI.BadRequestError);
    await expect(deep).rejects.toThrow("nested deeper than 256 levels");
  });
});

describe("the free plan", () => {
  let service: RunningService;
  const client = (options: object = {}) =>
    new OpenAI({ apiKey: "sk-free", baseURL: `${service.proxy}/v1`, maxRetries: 0, ...options });

  beforeEach(async () => {
    service = await startExample("openai", fake.url);
  });
  afterEach(() => service.close());

  test("a prompt beyond the limit passes once; then its debt is refused at once, and the SDK does not try again", async () => {
    const { fetch, count } = countingFetch();
    const content = "many words ".repeat(20_000);
    const huge = () =>
      client({ fetch, maxRetries: 2 }).chat.completions.create({
        model: "fake-1",
        messages: [{ role: "user", content }],
      });
    await huge();
    await until(async () => (await states(service, "free"))["prompt-tokens"]!.debt !== undefined);
    await expect(huge()).rejects.toThrow(OpenAI.RateLimitError);
    await expect(huge()).rejects.toMatchObject({ type: "input-tokens", code: "rate_limit_exceeded" });
    expect([count(), fake.calls.length]).toEqual([3, 1]);
  });

  test("has one stream at a time", async () => {
    let release: () => void = () => undefined;
    fake.script.push({ hold: () => new Promise((resolve) => (release = resolve)) });
    const open = () => client().chat.completions.create({ model: "fake-1", messages, stream: true });
    const first = await open();
    await expect(open()).rejects.toThrow('All 1 places of "streams" are taken.');
    release();
    for await (const _ of first);
    await until(async () => (await states(service, "free")).streams!.remaining === 1);
    for await (const _ of await open());
    expect(fake.calls.length).toBe(2);
  });
});

describe("retries of the SDKs", () => {
  test("an error of the vendor's is retried, and costs one more request", async () => {
    await using service = await startExample("openai", fake.url);
    fake.script.push({ status: 500 });
    const client = new OpenAI({ apiKey: "sk-team", baseURL: `${service.proxy}/v1`, maxRetries: 1 });
    await client.chat.completions.create({ model: "fake-1", messages });
    expect(fake.calls.length).toBe(2);
  });

  test.each(["openai", "anthropic"] as const)(
    "the SDK of %s waits as long as it is told, then passes",
    async (vendor) => {
      await using service = await startTestService({
        rules: [{ id: "paced", key: [], algorithm: "gcra", limit: 1, window: "200ms", burst: 1 }],
        settings: { upstream: fake.url, usage: vendor },
      });
      const { fetch, count } = countingFetch();
      const options = { apiKey: "x", baseURL: service.proxy!, fetch, maxRetries: 5 };
      for (let i = 0; i < 3; i++) {
        if (vendor === "openai") await new OpenAI(options).chat.completions.create({ model: "fake-1", messages });
        else await new Anthropic(options).messages.create({ model: "fake-1", messages, max_tokens: 5 });
      }
      expect(fake.calls.length).toBe(3);
      expect(count()).toBeGreaterThanOrEqual(3);
    },
  );

  test.each(["openai", "anthropic"] as const)("the SDK of %s does not sleep for an hour", async (vendor) => {
    await using service = await startTestService({
      rules: [{ id: "hourly", key: [], algorithm: "rolling-window", limit: 1, window: "1h" }],
      settings: { upstream: fake.url, usage: vendor },
    });
    const { fetch, count } = countingFetch();
    const options = { apiKey: "x", baseURL: service.proxy!, fetch };
    const call = () =>
      vendor === "openai"
        ? new OpenAI(options).chat.completions.create({ model: "fake-1", messages })
        : new Anthropic(options).messages.create({ model: "fake-1", messages, max_tokens: 5 });
    await call();
    await expect(call()).rejects.toThrow(vendor === "openai" ? OpenAI.RateLimitError : Anthropic.RateLimitError);
    expect(count()).toBe(2);
  });
});

describe("Anthropic's SDK", () => {
  let service: RunningService;
  const client = (plan: string) => new Anthropic({ apiKey: `sk-${plan}`, baseURL: service.proxy!, maxRetries: 0 });
  const body = { model: "claude-haiku-4", messages, max_tokens: 20 };

  beforeAll(async () => {
    service = await startExample("anthropic", fake.url);
  });
  afterAll(() => service.close());

  test("a message, with fields in Anthropic's form", async () => {
    const { data, response } = await client("team").messages.create(body).withResponse();
    expect(data.usage.output_tokens).toBe(4);
    const { headers } = response;
    expect(headers.get("anthropic-ratelimit-output-tokens-limit")).toBe("20000");
    expect(headers.get("anthropic-ratelimit-requests-remaining")).toBe("59");
    expect(Date.parse(headers.get("anthropic-ratelimit-requests-reset")!)).toBeGreaterThan(0);
    expect(fake.calls[0]!.headers["x-api-key"]).toBe("sk-vendor");
  });

  test("a stream: its text and its usage", async () => {
    const final = await client("team").messages.stream(body).finalMessage();
    expect(final.content).toEqual([{ type: "text", text: "word word word word " }]);
    expect(final.usage.output_tokens).toBe(4);
  });

  test("the free plan ends in an error that the SDK knows", async () => {
    let refused: unknown;
    while (refused === undefined) {
      await client("free")
        .messages.create(body)
        .catch((error: unknown) => {
          refused = error;
        });
    }
    expect(refused).toBeInstanceOf(Anthropic.RateLimitError);
    expect((refused as InstanceType<typeof Anthropic.RateLimitError>).error).toMatchObject({
      type: "error",
      error: { type: "rate_limit_error" },
    });
  });
});
