/**
 * Answers as no vendor should send them: compressed though nobody asked, byte by byte, cut, under a false name, with false counts. What the
 * client gets, and what it is charged. The vendor is a bare server here that writes what each test says.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, createGzip, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import type { Rule } from "sluice";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, postJson, type RunningService, startTestService } from "../service/running-service.js";

const LIMIT = 1_000_000;
const counted = (id: string, attribute: string, estimate: Rule["estimate"]): Rule => ({
  id,
  key: ["user"],
  algorithm: "rolling-window",
  limit: LIMIT,
  window: "1d",
  cost: { attribute },
  ...(estimate !== undefined && { estimate }),
});
const rules: Rule[] = [
  counted("prompt", "prompt_tokens", { attribute: "estimated_prompt_tokens", default: 100 }),
  counted("completion", "completion_tokens", { attribute: "max_tokens", default: 300 }),
];
const files = { "attributes.yaml": "attributes: { user: { header: x-user } }\n" };
const EVENTS = { "content-type": "text/event-stream" };
const GZIP = { ...EVENTS, "content-encoding": "gzip" };
const JSON_TYPE = { "content-type": "application/json" };
/** Eight bytes of text: two tokens where nothing is reported. */
const word = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "word... " } }] })}\n\n`;
const usageEvent = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 77 } })}\n\n`;
const DONE = "data: [DONE]\n\n";

let vendor: Server;
let service: RunningService;
/** What the next call is answered with. */
let answer: (response: ServerResponse, request: IncomingMessage) => unknown;

beforeAll(async () => {
  vendor = createServer((request, response) => {
    request.resume().on("end", () => answer(response, request));
    response.on("error", () => undefined);
  });
  vendor.listen(0, "127.0.0.1");
  await once(vendor, "listening");
  service = await startTestService({
    rules,
    files,
    settings: {
      attributes: "attributes.yaml",
      upstream: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`,
      usage: "openai",
      "store-deadline": "10s",
    },
  });
});

afterAll(async () => {
  await service?.close();
  vendor?.closeAllConnections();
  vendor?.close();
});

const post = (user: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${service.proxy}/v1/chat/completions`, {
    method: "POST",
    headers: { "x-user": user },
    body: JSON.stringify({ model: "m", stream: true, messages: [{ content: "hello" }] }),
    ...(signal && { signal }),
  });

/** "m" and "hello". */
const ESTIMATE = 2;

async function untilUsed(user: string, expected: Record<string, number>): Promise<void> {
  for (let looks = 0; ; looks++) {
    const { body } = await postJson(`${service.http}/v1/peek`, { attributes: { user }, cost: 0 });
    const seen = Object.fromEntries(body.checks.map((check: Json) => [check.rule, check.limit - check.remaining]));
    if (looks > 400 || Object.entries(expected).every(([rule, units]) => seen[rule] === units)) {
      expect(seen).toMatchObject(expected);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, words: number): Promise<string> {
  let text = "";
  while (text.split("word").length <= words) text += Buffer.from((await reader.read()).value!).toString();
  return text;
}

test("a compressed stream: each event reaches the client before the next one exists, and its usage is charged", async () => {
  const gzip = createGzip();
  const send = (text: string) => {
    gzip.write(text);
    gzip.flush();
  };
  answer = (response) => {
    gzip.pipe(response.writeHead(200, GZIP));
    send(word);
  };
  const reader = (await post("gzip")).body!.getReader();
  for (let words = 1; words <= 3; words++) {
    expect(await readUntil(reader, 1)).toContain("word... ");
    send(word);
  }
  gzip.end(usageEvent + DONE);
  let rest = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) rest += Buffer.from(read.value);
  expect(rest).toBe(word + DONE);
  await untilUsed("gzip", { prompt: 11, completion: 77 });
});

test("a compressed stream whose client leaves is charged what had come", async () => {
  const gzip = createGzip();
  answer = (response) => {
    gzip.pipe(response.writeHead(200, GZIP));
    gzip.write(word.repeat(5));
    gzip.flush();
  };
  const leaving = new AbortController();
  await readUntil((await post("leaves", leaving.signal)).body!.getReader(), 5);
  leaving.abort();
  await untilUsed("leaves", { prompt: ESTIMATE, completion: 10 });
  gzip.destroy();
});

test("a compressed stream that is cut is not taken for a whole one, and charged what had come", async () => {
  const gzip = createGzip();
  answer = (response) => {
    gzip.on("data", (chunk) => response.write(chunk));
    response.writeHead(200, GZIP);
    gzip.write(word.repeat(6));
    gzip.flush();
  };
  const whole = await post("cut");
  const reader = whole.body!.getReader();
  await readUntil(reader, 6);
  vendor.closeAllConnections();
  await expect(reader.read()).rejects.toThrow();
  await untilUsed("cut", { prompt: ESTIMATE, completion: 12 });
});

test("bytes that claim to be gzip and are not end the answer, and cost the prompt", async () => {
  answer = (response) => response.writeHead(200, GZIP).end("data: no gzip\n\n".repeat(100));
  await expect(post("false-gzip").then((response) => response.text())).rejects.toThrow();
  await untilUsed("false-gzip", { prompt: ESTIMATE, completion: 0 });
});

test.each<[string, string, (body: Buffer) => Buffer]>([
  ["Brotli", "br", (body) => brotliCompressSync(body)],
  ["zlib's deflate", "deflate", (body) => deflateSync(body)],
  ["bare deflate", "deflate", (body) => deflateRawSync(body)],
])("a stream in %s reaches the client decoded, and its usage is charged", async (name, coding, encode) => {
  answer = (response) =>
    response
      .writeHead(200, { ...EVENTS, "content-encoding": coding })
      .end(encode(Buffer.from(word + usageEvent + DONE)));
  expect(await (await post(name)).text()).toBe(word + DONE);
  await untilUsed(name, { prompt: 11, completion: 77 });
});

test.each([
  ["by its length", { "content-length": "0" }],
  ["by its only chunk", {}],
])("an answer without a body, %s, is whole though its headers name a coding", async (name, length) => {
  answer = (response) => response.writeHead(202, { ...JSON_TYPE, "content-encoding": "gzip", ...length }).end();
  const empty = await post(`empty-${name}`);
  expect([empty.status, await empty.text()]).toEqual([202, ""]);
  await untilUsed(`empty-${name}`, { prompt: ESTIMATE, completion: 0 });
});

test.each(["\n", "\r\n", "\r"])(
  "a stream byte by byte, with lines that end in %j, is whole but for the usage that nobody asked for",
  async (lineEnd) => {
    const withEnds = (text: string) => text.replaceAll("\n", lineEnd);
    const bytes = Buffer.from(withEnds(word + usageEvent + word + DONE));
    answer = async (response) => {
      response.writeHead(200, EVENTS).socket!.setNoDelay(true);
      for (let at = 0; at < bytes.length; at++) {
        response.write(bytes.subarray(at, at + 1));
        if (at % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      response.end();
    };
    const user = `bytes-${lineEnd.length}-${lineEnd.charCodeAt(0)}`;
    expect(await (await post(user)).text()).toBe(withEnds(word + word + DONE));
    await untilUsed(user, { prompt: 11, completion: 77 });
  },
);

test("an event of which every line carries a part is read as one", async () => {
  const [start, end] = ['{"choices":[],"usage":{"prompt_tokens":4,', '"completion_tokens":19}}'];
  answer = (response) => response.writeHead(200, EVENTS).end(`${word}data: ${start}\ndata: ${end}\n\n${DONE}`);
  expect(await (await post("parts")).text()).toBe(word + DONE);
  await untilUsed("parts", { prompt: 4, completion: 19 });
});

test.each([
  ["less than none", { prompt_tokens: -5, completion_tokens: -100 }],
  ["a fraction", { prompt_tokens: 0.5, completion_tokens: 1.5 }],
  ["a text", { prompt_tokens: "1", completion_tokens: "1" }],
  ["more than a number holds", { completion_tokens: 1e300 }],
  ["none for a text", { completion_tokens: 0 }],
])("a count of %s is no report: the text is charged", async (name, usage) => {
  const last = `data: ${JSON.stringify({ choices: [], usage })}\n\n`;
  answer = (response) => response.writeHead(200, EVENTS).end(word.repeat(4) + last + DONE);
  await (await post(name)).text();
  await untilUsed(name, { prompt: ESTIMATE, completion: 8 });
});

test("a stream that ends within the number of its usage is charged by its bytes, not by the first digit", async () => {
  const cut = usageEvent.slice(0, usageEvent.indexOf("77") + 1);
  answer = (response) => response.writeHead(200, EVENTS).end(word.repeat(4) + cut);
  await (await post("cut-number")).text();
  await untilUsed("cut-number", { prompt: 11, completion: Math.ceil((4 * 8 + cut.length - "data: ".length) / 4) });
});

test("usage that the model wrote itself, in its text, is text", async () => {
  const content = '"}}],"usage":{"completion_tokens":1}}\n\ndata: {"usage":{"completion_tokens":1}}\n\n';
  const event = `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
  answer = (response) => response.writeHead(200, EVENTS).end(event + DONE);
  expect(await (await post("injected")).text()).toBe(event + DONE);
  const written = JSON.stringify(content).length - 2;
  await untilUsed("injected", { completion: Math.ceil(written / 4) });
});

test("an answer under a false name is charged by its bytes, compressed or not", async () => {
  const body = word.repeat(10);
  answer = (response) => response.writeHead(200, JSON_TYPE).end(body);
  expect(await (await post("false-name")).text()).toBe(body);
  await untilUsed("false-name", { completion: Math.ceil(body.length / 4) });
  answer = (response) => response.writeHead(200, { ...JSON_TYPE, "content-encoding": "gzip" }).end(gzipSync(body));
  expect(await (await post("false-name-gzip")).text()).toBe(body);
  await untilUsed("false-name-gzip", { completion: Math.ceil(body.length / 4) });
  const text = "a word and another ".repeat(10);
  const events = `data: ${text}\n\ndata: ${text}\n\n${DONE}`;
  answer = (response) => response.writeHead(200, EVENTS).end(events);
  expect(await (await post("bare-events")).text()).toBe(events);
  await untilUsed("bare-events", { completion: Math.ceil((2 * text.length) / 4) });
});
