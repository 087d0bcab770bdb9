/**
 * A small stream that ends at each of its bytes: cut by the vendor, left by the client, or ended as if it were whole. However it ends, the
 * reservation is settled, the place among the streams is free, and the charge is what had come: all text of whole events, and no more than
 * the bytes of an open one besides. The reader of usage sees every offset, the whole service one in eleven.
 */
import { once } from "node:events";
import { createServer, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageReader } from "../../packages/server/src/enforcement/proxy/usage/usage-reader.js";
import { vendorOf } from "../../packages/server/src/enforcement/proxy/usage/vendors.js";
import { type Json, postJson, type RunningService, startTestService } from "../service/running-service.js";

const LIMIT = 1_000_000;
/** Held while the call runs; no charge of these streams comes near it. */
const HELD = 5_000;
const counted = (id: string, attribute: string): Rule => ({
  ...{ id, key: ["user"], algorithm: "rolling-window", limit: LIMIT, window: "1d" },
  cost: { attribute },
  estimate: { default: HELD },
});
const rules: Rule[] = [
  counted("prompt", "prompt_tokens"),
  counted("completion", "completion_tokens"),
  { id: "streams", match: { stream: true }, key: ["user"], algorithm: "concurrency", limit: 5 },
];

const PROMPT = 11;
const COMPLETION = 77;
/** Letters of two, three and four bytes, escapes, and what looks like an end. */
const texts = ["grüße 🌊 ", 'zitat "q" \\ \n\n', "data: [DONE] €"];
const chunk = (delta: object): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta }], usage: null })}\n\n`;
const named = (type: string, rest: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
const streams = {
  openai: [
    ...texts.map((content) => chunk({ content })),
    chunk({ tool_calls: [{ index: 0, function: { name: "f", arguments: '{"a":1}' } }] }),
    `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: PROMPT, completion_tokens: COMPLETION } })}\r\n\r\n`,
    "data: [DONE]\n\n",
  ],
  anthropic: [
    named("message_start", { message: { usage: { input_tokens: PROMPT, output_tokens: 1 } } }),
    ...texts.map((text) => named("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
    named("content_block_delta", { index: 1, delta: { type: "input_json_delta", partial_json: '{"a":1}' } }),
    named("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: COMPLETION } }),
    named("message_stop", {}),
  ],
} as const;
type Name = keyof typeof streams;
type Way = "cut by the vendor" | "left by the client" | "ended";

/** Bytes of the model's text in an event, as they are written. */
function textBytes(event: string): number {
  const written = /"(?:content|arguments|text|partial_json)":"((?:\\.|[^"\\])*)"\}/.exec(event)?.[1];
  return Buffer.byteLength(written ?? "");
}

let vendor: Server;
const services = new Map<Name, RunningService>();
const answers = new Map<string, (response: ServerResponse) => void>();

beforeAll(async () => {
  vendor = createServer((call, response) => {
    response.on("error", () => undefined);
    call.resume().on("end", () => answers.get(String(call.headers["x-user"]))!(response));
  });
  await once(vendor.listen(0, "127.0.0.1"), "listening");
  const upstream = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  const files = { "attributes.yaml": "attributes: { user: { header: x-user } }\n" };
  for (const usage of Object.keys(streams) as Name[]) {
    // An abandoned answer is read on for a moment, in each of hundreds of calls: leaving.test.ts looks at that.
    const settings = {
      ...{ attributes: "attributes.yaml", upstream, usage },
      ...{ "store-deadline": "10s", "usage-drain": "10ms" },
    };
    services.set(usage, await startTestService({ rules, files, settings }));
  }
});

afterAll(async () => {
  for (const service of services.values()) await service.close();
  vendor.closeAllConnections();
  vendor.close();
});

/** All ends are in this process: bytes that one has written are read by the next within a turn of the event loop. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** What a stream that ends before byte `at` is charged. */
async function charged(name: Name, way: Way, at: number): Promise<Record<string, number>> {
  const service = services.get(name)!;
  const user = `${way}-${at}`;
  const bytes = Buffer.from(streams[name].join("")).subarray(0, at);
  let wrote: () => void = () => undefined;
  const written = new Promise<void>((resolve) => (wrote = resolve));
  const vendorClosed = new Promise((resolve) => {
    answers.set(user, (response) => {
      response.once("close", resolve);
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (way === "ended") response.end(bytes);
      else {
        response.write(at === 0 ? ":" : bytes, () => {
          wrote();
          if (way === "cut by the vendor") response.destroy();
        });
      }
    });
  });
  const path = name === "openai" ? "/v1/chat/completions" : "/v1/messages";
  const call = request(service.proxy + path, { method: "POST", headers: { "x-user": user }, agent: false });
  call.on("error", () => undefined).end(JSON.stringify({ model: "m", stream: true, messages: [{ content: "hello" }] }));
  const closed = new Promise((resolve) => call.once("close", resolve));
  call.once("response", (answer) => {
    answer.on("error", () => undefined).resume();
    if (way === "left by the client") void written.then(turns).then(() => answer.destroy());
  });
  await Promise.all([closed, vendorClosed]);
  for (let looks = 0; ; looks++) {
    const { body } = await postJson(`${service.http}/v1/peek`, { attributes: { user, stream: true }, cost: 0 });
    const used = Object.fromEntries(body.checks.map((check: Json) => [check.rule, check.limit - check.remaining]));
    if ((used.completion !== HELD && used.streams === 0) || looks > 1_000) return used;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

interface Charge {
  readonly at: number;
  readonly completion: number;
}

/** By the events alone, as JSON and regular expressions read them. */
function expectRight(name: Name, { at, completion }: Charge): void {
  let [whole, text, reported] = [0, 0, 0];
  for (const event of streams[name]) {
    const next = whole + Buffer.byteLength(event);
    if (next > at) break;
    whole = next;
    text += textBytes(event);
    reported = Math.max(reported, Number(/(?:completion|output)_tokens":(\d+)/.exec(event)?.[1] ?? 0));
  }
  // A report counts once its number is whole, a few bytes before its event is.
  const reports = name === "openai" ? [COMPLETION] : [1, COMPLETION];
  const [least, most] = [Math.max(reported, text / 4), Math.max(reported, Math.ceil((text + at - whole) / 4))];
  const isRight =
    reported === COMPLETION
      ? completion === COMPLETION
      : (completion >= least && completion <= most) || (reports.includes(completion) && completion >= least);
  expect({ at, completion, least, most, isRight }).toMatchObject({ isRight: true });
}

const STEP = 11;

describe.each(Object.keys(streams) as Name[])("a stream of %s's", (name) => {
  const bytes = Buffer.from(streams[name].join(""));

  test.each([false, true])("is read as what had come, at each of its bytes; as if it were whole: %s", (isWhole) => {
    for (let at = 0; at <= bytes.length; at++) {
      const reader = new UsageReader({ vendor: vendorOf(name), kind: "events" });
      reader.push(bytes.subarray(0, at));
      expectRight(name, { at, completion: reader.usage({ isWhole }).completion });
    }
  });

  test.each<Way>(["cut by the vendor", "left by the client", "ended"])("%s is charged what had come", async (way) => {
    for (let at = way.length % STEP; at < bytes.length + STEP; at += STEP) {
      const { completion, prompt, streams: places } = await charged(name, way, Math.min(at, bytes.length));
      expectRight(name, { at: Math.min(at, bytes.length), completion: completion! });
      if (at >= bytes.length) expect(prompt).toBe(PROMPT);
      expect(places).toBe(0);
    }
  });
});
