/**
 * Calls of the vendors' SDKs beside plain chats: tools, several choices, the Responses API, batches and files, streams that are left after
 * each of their events. What the SDK makes of the answer, and what its user is charged.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, postJson, type RunningService, startTestService } from "../service/running-service.js";

const LIMIT = 1_000_000;
const HELD = 5_000;
const counted = (id: string, attribute: string, estimate: Rule["estimate"]): Rule => ({
  ...{ id, key: ["user"], algorithm: "rolling-window", limit: LIMIT, window: "1d" },
  cost: { attribute },
  ...(estimate !== undefined && { estimate }),
});
const rules: Rule[] = [
  counted("prompt", "prompt_tokens", { default: HELD }),
  counted("completion", "completion_tokens", { attribute: "max_tokens", default: HELD }),
  { id: "streams", match: { stream: true }, key: ["user"], algorithm: "concurrency", limit: 5 },
];

let vendor: Server;
const services = new Map<string, RunningService>();
let answer: (response: ServerResponse, call: IncomingMessage, body: string) => unknown;

beforeAll(async () => {
  vendor = createServer(async (call, response) => {
    response.on("error", () => undefined);
    let body = "";
    for await (const chunk of call) body += chunk;
    answer(response, call, body);
  });
  await once(vendor.listen(0, "127.0.0.1"), "listening");
  const upstream = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  const files = { "attributes.yaml": "attributes: { user: { header: x-user } }\n" };
  for (const usage of ["openai", "anthropic"]) {
    const settings = { attributes: "attributes.yaml", upstream, usage, "store-deadline": "10s" };
    services.set(usage, await startTestService({ rules, files, settings }));
  }
});

afterAll(async () => {
  for (const service of services.values()) await service.close();
  vendor.closeAllConnections();
  vendor.close();
});

const openai = (user: string): OpenAI =>
  new OpenAI({
    apiKey: "sk",
    baseURL: `${services.get("openai")!.proxy}/v1`,
    maxRetries: 0,
    defaultHeaders: { "x-user": user },
  });
const anthropic = (user: string): Anthropic =>
  new Anthropic({
    apiKey: "sk",
    baseURL: services.get("anthropic")!.proxy!,
    maxRetries: 0,
    defaultHeaders: { "x-user": user },
  });

async function used(usage: string, user: string): Promise<Record<string, number>> {
  const attributes = { user, stream: true };
  const { body } = await postJson(`${services.get(usage)!.http}/v1/peek`, { attributes, cost: 0 });
  return Object.fromEntries(body.checks.map((check: Json) => [check.rule, check.limit - check.remaining]));
}

async function untilUsed(usage: string, user: string, expected: Record<string, number>): Promise<void> {
  for (let looks = 0; ; looks++) {
    const seen = await used(usage, user);
    if (looks > 400 || Object.entries(expected).every(([rule, units]) => seen[rule] === units)) {
      expect(seen).toMatchObject(expected);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const sendJson = (response: ServerResponse, body: object): unknown =>
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
const sendEvents = (response: ServerResponse, events: readonly object[], end = "data: [DONE]\n\n"): unknown =>
  response
    .writeHead(200, { "content-type": "text/event-stream" })
    .end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + end);
const withNames = (events: readonly ({ type: string } & Record<string, unknown>)[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");

const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
const usage = { prompt_tokens: 11, completion_tokens: 77, total_tokens: 88 };
const messages = [{ role: "user" as const, content: "one two three" }];
const tools = [{ type: "function" as const, function: { name: "f", parameters: { type: "object", properties: {} } } }];

describe("OpenAI's SDK", () => {
  const call = { index: 0, id: "t", type: "function", function: { name: "f", arguments: '{"a":1}' } };

  test("a tool call, whole and in a stream, with two choices: the bound is held for each, the report is charged", async () => {
    let held: Record<string, number> = {};
    answer = async (response, _, body) => {
      held = await used("openai", JSON.parse(body).user);
      const message = { role: "assistant", content: null, tool_calls: [call] };
      const choices = [0, 1].map((index) => ({ index, message, finish_reason: "tool_calls" }));
      sendJson(response, { ...chunk, object: "chat.completion", choices, usage });
    };
    const whole = await openai("tool").chat.completions.create({
      ...{ model: "m", messages, tools, n: 2, max_completion_tokens: 100, user: "tool" },
    });
    expect(whole.choices.map(({ message }) => message.tool_calls?.length)).toEqual([1, 1]);
    expect(held.completion).toBe(200);
    await untilUsed("openai", "tool", { prompt: 11, completion: 77 });

    answer = (response) => {
      const parts = ['{"a"', ":1}"].map((part) => ({ ...call, function: { arguments: part } }));
      const deltas = [{ ...call, function: { name: "f", arguments: "" } }, ...parts];
      const choices = deltas.map((delta) => [
        { index: 0, delta: { role: "assistant", tool_calls: [delta] }, finish_reason: null },
      ]);
      sendEvents(response, [
        ...choices.map((choice) => ({ ...chunk, choices: choice })),
        { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
        { ...chunk, choices: [], usage },
      ]);
    };
    const stream = openai("tool-stream").chat.completions.stream({ model: "m", messages, tools });
    const [choice] = (await stream.finalChatCompletion()).choices;
    expect(choice?.message.tool_calls?.[0]).toMatchObject({ function: { arguments: '{"a":1}' } });
    await untilUsed("openai", "tool-stream", { prompt: 11, completion: 77, streams: 0 });
  });

  const reported = { input_tokens: 11, output_tokens: 77, total_tokens: 88 };
  const output = [
    { type: "message", id: "i", role: "assistant", content: [{ type: "output_text", text: "word word" }] },
  ];

  test("the Responses API, whole and in a stream: input and output are charged", async () => {
    answer = (response) => sendJson(response, { id: "r", object: "response", output, usage: reported });
    const whole = await openai("response").responses.create({ model: "m", input: "hello", max_output_tokens: 50 });
    expect(whole.output_text).toBe("word word");
    await untilUsed("openai", "response", { prompt: 11, completion: 77 });

    const events = [
      { type: "response.created", response: { id: "r", object: "response", output: [], usage: null } },
      { type: "response.output_text.delta", item_id: "i", output_index: 0, content_index: 0, delta: "word word" },
      { type: "response.output_text.done", item_id: "i", output_index: 0, content_index: 0, text: "word word" },
      { type: "response.completed", response: { id: "r", object: "response", output, usage: reported } },
    ];
    answer = (response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(withNames(events));
    const types: string[] = [];
    for await (const { type } of await openai("response-stream").responses.create({
      ...{ model: "m", input: "hello", stream: true },
    }))
      types.push(type);
    expect(types).toEqual(events.map(({ type }) => type));
    await untilUsed("openai", "response-stream", { prompt: 11, completion: 77, streams: 0 });
  });

  test("a file is uploaded unread, and a batch is made: neither costs tokens beyond the estimate of its call", async () => {
    let uploaded = "";
    answer = (response, _, body) => {
      uploaded = body;
      sendJson(response, { id: "file-1", object: "file", bytes: 9, purpose: "batch" });
    };
    const file = new File(['{"custom_id":"1"}\n'], "calls.jsonl");
    expect((await openai("file").files.create({ file, purpose: "batch" })).id).toBe("file-1");
    expect(uploaded).toContain('{"custom_id":"1"}');
    await untilUsed("openai", "file", { prompt: 0, completion: 0 });

    answer = (response) => sendJson(response, { id: "batch-1", object: "batch", status: "validating" });
    const batch = await openai("batch").batches.create({
      ...{ input_file_id: "file-1", endpoint: "/v1/chat/completions", completion_window: "24h" },
    });
    expect(batch.status).toBe("validating");
    await untilUsed("openai", "batch", { completion: 0 });
  });

  test("a stream that its user leaves after any of its events is charged for the text so far, and its call is ended", async () => {
    for (let left = 1; left <= 4; left++) {
      const user = `leaves-${left}`;
      const ended = new Promise((resolve) => {
        answer = (response) => {
          response.once("close", resolve).writeHead(200, { "content-type": "text/event-stream" });
          const delta = { ...chunk, choices: [{ index: 0, delta: { content: "12345678" }, finish_reason: null }] };
          response.write(`data: ${JSON.stringify(delta)}\n\n`.repeat(left));
        };
      });
      const stream = await openai(user).chat.completions.create({ model: "m", messages, stream: true });
      let seen = 0;
      for await (const _ of stream) if (++seen === left) break;
      await ended;
      await untilUsed("openai", user, { completion: 2 * left, streams: 0 });
    }
  });
});

describe("Anthropic's SDK", () => {
  const cached = { input_tokens: 11, cache_read_input_tokens: 20, cache_creation_input_tokens: 30, output_tokens: 1 };
  const message = { id: "m", type: "message", role: "assistant", model: "m", stop_reason: null, stop_sequence: null };

  test("a tool call in a stream, with a cache: all of the prompt is charged, and the last count of the output", async () => {
    const block = { type: "tool_use", id: "t", name: "f", input: {} };
    const parts = ['{"a"', ":1}"].map((partial_json) => ({ type: "input_json_delta", partial_json }));
    answer = (response) =>
      response
        .writeHead(200, { "content-type": "text/event-stream" })
        .end(
          withNames([
            { type: "message_start", message: { ...message, content: [], usage: cached } },
            ...[{ type: "ping" }, { type: "content_block_start", index: 0, content_block: block }],
            ...parts.map((delta) => ({ type: "content_block_delta", index: 0, delta })),
            { type: "content_block_stop", index: 0 },
            { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 77 } },
            { type: "message_stop" },
          ]),
        );
    const tool = { name: "f", input_schema: { type: "object" as const } };
    const stream = anthropic("tool").messages.stream({ model: "m", max_tokens: 100, messages, tools: [tool] });
    expect((await stream.finalMessage()).content).toMatchObject([{ type: "tool_use", input: { a: 1 } }]);
    await untilUsed("anthropic", "tool", { prompt: 61, completion: 77, streams: 0 });
  });

  test("an error in the middle of a stream is the SDK's error, and the text before it is charged", async () => {
    answer = (response) =>
      response.writeHead(200, { "content-type": "text/event-stream" }).end(
        withNames([
          { type: "message_start", message: { ...message, content: [], usage: cached } },
          { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
          { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "12345678" } },
          { type: "error", error: { type: "overloaded_error", message: "overloaded" } },
        ]),
      );
    const stream = anthropic("error").messages.stream({ model: "m", max_tokens: 100, messages });
    await expect(stream.finalMessage()).rejects.toThrow(/overloaded/);
    await untilUsed("anthropic", "error", { prompt: 61, completion: 2, streams: 0 });
  });
});
