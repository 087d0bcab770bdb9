/**
 * Who leaves before an answer reports its usage, who asks for work behind it, and who reads what was charged before: what each is charged.
 * The vendor is a bare server that writes what each test says.
 */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Rule } from "sluice";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, postJson, type RunningService, startTestService } from "../service/running-service.js";

const LIMIT = 1_000_000;
const counted = (id: string, attribute: string, estimate: NonNullable<Rule["estimate"]>): Rule => ({
  id,
  key: ["user"],
  algorithm: "rolling-window",
  limit: LIMIT,
  window: "1d",
  cost: { attribute },
  estimate,
});
const rules: Rule[] = [
  counted("prompt", "prompt_tokens", { attribute: "estimated_prompt_tokens", default: 100 }),
  counted("completion", "completion_tokens", { attribute: "max_tokens", default: 300 }),
  { id: "dear", match: { model: "dear-*" }, key: ["user"], algorithm: "rolling-window", limit: 1, window: "1d" },
  { id: "streams", match: { stream: true }, key: ["user"], algorithm: "concurrency", limit: 1 },
];
const EVENTS = { "content-type": "text/event-stream" };
const JSON_TYPE = { "content-type": "application/json" };
const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
/** Eight bytes: two tokens where nothing is reported. */
const delta = event({ type: "response.output_text.delta", delta: "12345678" });
const done = event({ type: "response.output_text.done", text: "12345678" });
const usage = { input_tokens: 120_000, output_tokens: 4_000 };
const completed = event({ type: "response.completed", response: { usage } });

let vendor: Server;
let service: RunningService;
let answer: (response: ServerResponse) => unknown;

beforeAll(async () => {
  vendor = createServer((request, response) => {
    request.resume().on("end", () => answer(response));
    response.on("error", () => undefined);
  });
  await once(vendor.listen(0, "127.0.0.1"), "listening");
  service = await startTestService({
    rules,
    files: { "attributes.yaml": "attributes: { user: { header: x-user } }\n" },
    settings: {
      attributes: "attributes.yaml",
      upstream: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`,
      usage: "openai",
      // A test is no place to find out how fast the machine is.
      "usage-drain": "1m",
      "store-deadline": "10s",
    },
  });
});
afterAll(async () => {
  await service?.close();
  vendor?.closeAllConnections();
  vendor?.close();
});

interface Sent {
  readonly user: string;
  readonly path?: string;
  readonly method?: string;
  readonly body?: RequestInit["body"] | object;
  readonly signal?: AbortSignal;
}

const send = ({ user, path = "/v1/responses", method = "POST", body, signal }: Sent): Promise<Response> =>
  fetch(service.proxy + path, {
    method,
    headers: { "x-user": user },
    ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
  });

async function untilUsed(user: string, expected: Record<string, number>): Promise<void> {
  for (let looks = 0; ; looks++) {
    const { body } = await postJson(`${service.http}/v1/peek`, { attributes: { user, stream: true }, cost: 0 });
    const seen = Object.fromEntries(body.checks.map((check: Json) => [check.rule, check.limit - check.remaining]));
    if (looks > 400 || Object.entries(expected).every(([rule, units]) => seen[rule] === units)) {
      expect(seen).toMatchObject(expected);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Asks for a stream, reads it until `last` has come, and leaves. Resolves when the proxy has seen that. */
async function leaveAfter(user: string, last: string, body: object = {}): Promise<void> {
  const leaving = new AbortController();
  const call = await send({ user, body: { model: "m", input: "x", stream: true, ...body }, signal: leaving.signal });
  const reader = call.body!.getReader();
  let text = "";
  while (!text.endsWith(last)) text += Buffer.from((await reader.read()).value!).toString();
  leaving.abort();
  await expect(reader.read()).rejects.toThrow();
  // The connection's end is on its way to the proxy, which sees it a moment later.
  await new Promise((resolve) => setTimeout(resolve, 100));
}

test("a client that leaves before the event with the usage is charged the usage, and holds its place until then", async () => {
  let stream: ServerResponse | undefined;
  answer = (response) => {
    stream = response.writeHead(200, EVENTS);
    response.write(delta + done);
  };
  await leaveAfter("near-end", done, { previous_response_id: "resp_huge" });
  expect(stream!.destroyed).toBe(false);
  await untilUsed("near-end", { streams: 1 });
  stream!.end(completed);
  await untilUsed("near-end", { prompt: 120_000, completion: 4_000, streams: 0 });
});

test("a client that leaves in the middle is charged for what came, and for the earlier response that it named", async () => {
  let stream: ServerResponse | undefined;
  answer = (response) => {
    stream = response.writeHead(200, EVENTS);
    response.write(delta);
  };
  await leaveAfter("middle", delta, { previous_response_id: "resp_huge" });
  // No usage comes within the bound of what is read on.
  const closed = once(stream!, "close");
  for (let i = 0; i < 300; i++) stream!.write(event({ type: "ping", padding: "x".repeat(1_024) }));
  await closed;
  // "m", "x" and the name of the response.
  await untilUsed("middle", { prompt: 10_000 + 3, completion: 2, streams: 0 });
});

test("what is not asked for by POST is charged for nothing: it was charged before, or is a file", async () => {
  const stored = { id: "resp_1", usage, output: [{ content: [{ text: "12345678" }] }] };
  answer = (response) => response.writeHead(200, JSON_TYPE).end(JSON.stringify(stored));
  for (const path of ["/v1/responses/resp_1", "/v1/files/file-1/content"])
    expect(await (await send({ user: "reads", method: "GET", path })).json()).toEqual(stored);
  answer = (response) => response.writeHead(200, { "content-type": "application/octet-stream" }).end("x".repeat(4_000));
  await (await send({ user: "reads", method: "GET", path: "/v1/files/file-2/content" })).text();
  answer = (response) => response.writeHead(200, JSON_TYPE).end(JSON.stringify({ usage }));
  await (await send({ user: "reads", method: "DELETE", path: "/v1/responses/resp_1" })).text();
  await untilUsed("reads", { prompt: 0, completion: 0 });
});

test("work in the background is charged what was held for it, or what its answer reports", async () => {
  answer = (response) => response.writeHead(200, JSON_TYPE).end('{"status":"queued","usage":null}');
  const body = { model: "m", input: "x", background: true, max_output_tokens: 250 };
  await (await send({ user: "queued", body })).text();
  await untilUsed("queued", { prompt: 1, completion: 250 });
  answer = (response) => response.writeHead(200, JSON_TYPE).end(JSON.stringify({ status: "completed", usage }));
  await (await send({ user: "at-once", body })).text();
  await untilUsed("at-once", { prompt: 120_000, completion: 4_000 });
});

test("a form's model and stream are those of a call, in whatever letters", async () => {
  answer = (response) => response.writeHead(200, JSON_TYPE).end('{"text":"12345678"}');
  const form = (model: string): FormData => {
    const made = new FormData();
    made.set("file", new Blob(["x".repeat(100_000)]), "a.mp3");
    made.set("model", model);
    return made;
  };
  const ask = async (model: string) =>
    (await send({ user: "form", path: "/v1/audio/transcriptions", body: form(model) })).status;
  expect([await ask("Dear-whisper"), await ask("dear-whisper"), await ask("cheap")]).toEqual([200, 429, 200]);
  // Two calls: their texts, a file each, and what the answers held.
  await untilUsed("form", { prompt: 1_003 + 1_002, completion: 4 });
});

test("a model in other letters is the same model", async () => {
  answer = (response) => response.writeHead(200, JSON_TYPE).end("{}");
  const ask = async (model: string) => (await send({ user: "letters", body: { model } })).status;
  expect([await ask("DEAR-1"), await ask("dear-1"), await ask("Dear-1")]).toEqual([200, 429, 429]);
});
