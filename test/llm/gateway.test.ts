/** The LLM gateway in front of a fake vendor: what passes, what is refused, what a hostile client or a broken vendor can do. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { Rule } from "sluice";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type FakeLlm, startFakeLlm } from "../harness/fake-llm.js";
import { rawRequest, requestText } from "../service/raw-request.js";
import { type Json, type RunningService, startTestService } from "../service/running-service.js";

const rules: Rule[] = [
  { id: "rpm", key: ["user"], algorithm: "rolling-window", limit: 3, window: "1h" },
  { id: "per-model", match: { model: "dear-*" }, key: ["user"], algorithm: "rolling-window", limit: 1, window: "1m" },
  { id: "streams", match: { stream: true }, key: ["room"], algorithm: "concurrency", limit: 1 },
];
const mapping = "attributes: { user: { header: x-user }, room: { header: x-room } }\n";
const BODY_LIMIT = 2_000_000;

let fake: FakeLlm;
let service: RunningService;

beforeAll(async () => {
  fake = await startFakeLlm();
  service = await startTestService({
    rules,
    files: { "attributes.yaml": mapping },
    settings: {
      attributes: "attributes.yaml",
      upstream: fake.url,
      usage: "openai",
      "usage-headers": "openai",
      "usage-body-limit": "2MB",
      "usage-drain": "0",
    },
  });
});
afterAll(async () => {
  await service.close();
  await fake.close();
});
beforeEach(() => {
  fake.calls.length = 0;
  fake.script.length = 0;
});

const chat = "/v1/chat/completions";
const messages = [{ role: "user", content: "three short words" }];

function post(body: unknown, headers: Record<string, string> = {}, path = chat): Promise<Response> {
  return fetch(service.proxy + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

describe("what passes", () => {
  test("a call reaches the vendor byte for byte, and its answer the client", async () => {
    const text = '{ "model":"fake-3",\n "messages":[], "x":"\\u00e9é" }';
    const answer = await post(text);
    expect(fake.calls[0]!.text).toBe(text);
    expect(((await answer.json()) as Json).usage.completion_tokens).toBe(3);
    expect(fake.calls[0]!.headers["accept-encoding"]).toBe("identity");
  });

  test("a stream that asks for no usage is asked for it, and its client does not see the extra event", async () => {
    const text = await (await post({ model: "fake-2", messages, stream: true })).text();
    expect(fake.calls[0]!.body.stream_options).toEqual({ include_usage: true });
    const events = text.split("\n\n").filter((event) => event !== "");
    expect(events.length).toBe(1 + 2 + 1 + 1);
    expect(text).not.toContain("completion_tokens");
    expect(events.at(-1)).toBe("data: [DONE]");
  });

  test("a stream that asks for usage gets it", async () => {
    const body = { model: "fake-2", messages, stream: true, stream_options: { include_usage: true } };
    expect(await (await post(body)).text()).toContain('"completion_tokens":2');
  });

  test("only completions know stream_options: other streams are passed as they came", async () => {
    const text = JSON.stringify({ model: "fake-2", input: "x", stream: true });
    await (await post(text, {}, "/v1/responses")).text();
    expect(fake.calls[0]!.text).toBe(text);
  });

  test.each(["\r\n", "\r"])("a stream with lines that end in %j passes whole", async (lineEnd) => {
    fake.script.push({ lineEnd });
    const text = await (await post({ model: "fake-2", messages, stream: true })).text();
    expect(text.split(lineEnd + lineEnd).length).toBe(6);
    expect(text).not.toContain("completion_tokens");
  });

  test("an event reaches the client before the next one exists", async () => {
    let next: () => void = () => undefined;
    fake.script.push({
      hold: (token) => (token === 0 ? Promise.resolve() : new Promise((resolve) => (next = resolve))),
    });
    const answer = await post({ model: "fake-2", messages, stream: true });
    const reader = answer.body!.getReader();
    let text = "";
    while (!text.includes("word")) text += Buffer.from((await reader.read()).value!).toString();
    expect(fake.calls[0]!.wasCut).toBe(false);
    next();
    while (!text.includes("[DONE]")) text += Buffer.from((await reader.read()).value!).toString();
  });

  test("an answer that is compressed all the same reaches the client decoded", async () => {
    fake.script.push({ gzip: true });
    const answer = await post({ model: "fake-3", messages });
    expect(answer.headers.get("content-encoding")).toBeNull();
    expect(((await answer.json()) as Json).usage.completion_tokens).toBe(3);
  });

  test("uploads pass unread, whatever their size", async () => {
    const form = new FormData();
    form.set("file", new Blob([Buffer.alloc(3_000_000, "x")]));
    await fetch(`${service.proxy}/v1/files`, { method: "POST", body: form });
    expect(fake.calls[0]!.text.length).toBeGreaterThan(3_000_000);
  });

  test("the vendor's own rate limit fields give way to those of the client's limits", async () => {
    fake.script.push({ headers: { "x-ratelimit-remaining-requests": "9999", "x-ratelimit-remaining-tokens": "9" } });
    const { headers } = await post({ model: "fake-1", messages }, { "x-user": "fields" });
    expect(headers.get("x-ratelimit-limit-requests")).toBe("3");
    expect(headers.get("x-ratelimit-remaining-requests")).toBe("2");
    expect(headers.get("x-ratelimit-reset-requests")).toBe("1h0m0s");
    expect(headers.get("x-ratelimit-remaining-tokens")).toBeNull();
  });
});

describe("hostile clients", () => {
  test.each([
    ["no JSON", "hello", "body: expected JSON"],
    ["half of a body", '{"model":', "it ends too early"],
    ["a list", "[]", "body: expected a JSON object"],
    ["a name that comes twice", '{"model":"cheap","model":"dear-1"}', "model: expected once, got twice"],
    [
      "a name that comes twice, once escaped",
      '{"model":"cheap","m\\u006fdel":"dear-1"}',
      "model: expected once, got twice",
    ],
    ["a name that lenient parsers read", '{"model":"cheap","m\\odel":"dear-1"}', "is no text"],
    ["a name that ends at its NUL", '{"model\\u0000":"dear-1","model":"cheap"}', "expected model, in these letters"],
    ["a comment", '{"model":"cheap"/*"*/}', "is not expected there"],
    ["deep JSON", `{"a":${"[".repeat(100_000)}`, "nested deeper than 256 levels"],
  ])("%s is refused in the vendor's shape, and never reaches the vendor", async (_what, text, message) => {
    const answer = await post(text);
    const { error } = (await answer.json()) as Json;
    expect([answer.status, error.type, error.code]).toEqual([400, "invalid_request_error", "invalid_call"]);
    expect(error.message).toContain(message);
    expect(fake.calls.length).toBe(0);
  });

  test("a compressed body is refused: it could be read only by undoing it", async () => {
    const answer = await post("x", { "content-encoding": "gzip" });
    expect([answer.status, fake.calls.length]).toEqual([415, 0]);
  });

  test("a body of a charset in which ASCII may spell another text is refused", async () => {
    const hidden = '{"model":"cheap-1","x":"+ACI-,+ACI-model+ACI-:+ACI-dear-1"}';
    const answer = await post(hidden, { "content-type": "application/json; charset=utf-7" });
    expect([answer.status, fake.calls.length]).toEqual([415, 0]);
  });

  test("a second content type is refused: its boundary may show another form", async () => {
    const inner = '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\ndear-1\r\n--b--';
    const field = (name: string, value: string) =>
      `--a\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const body = `${field("model", "cheap-1")}${field("prompt", `\r\n${inner}`)}--a--`;
    const types = ["a", "b"].map((boundary) => `Content-Type: multipart/form-data; boundary=${boundary}`);
    const send = (headers: string[]) =>
      rawRequest(
        Number(new URL(service.proxy!).port),
        requestText({
          ...{ method: "POST", target: "/v1/audio/transcriptions", body },
          headers: [...headers, `Content-Length: ${body.length}`],
        }),
      );
    const { status, text } = await send(types);
    expect([status, fake.calls.length]).toEqual([400, 0]);
    expect(text).toContain("content-type: expected one such header, got several");
    await send(types.slice(0, 1));
    expect(fake.calls.length).toBe(1);
  });

  test.each([[-1], [1e300], ["5"], [null], [[5]], [0.5]])(
    "max_tokens: %j is the vendor's to judge",
    async (max_tokens) => {
      expect((await post({ model: "fake-1", messages, max_tokens })).status).toBe(200);
      expect(fake.calls.length).toBe(1);
    },
  );

  test("a content type that is not JSON does not hide the model", async () => {
    const headers = { "x-user": "typed", "content-type": "text/plain" };
    const answers = [await post({ model: "dear-1" }, headers), await post({ model: "dear-1" }, headers)];
    expect(answers.map(({ status }) => status)).toEqual([200, 429]);
  });

  test.each([
    "/openai/deployments/dear-1/chat/completions?api-version=1",
    "/v1beta/models/Dear-1:generateContent",
    "/v1beta/models/dear-1%3AgenerateContent",
    "/v1beta/tunedModels/dear-1:generateContent",
    "/model/dear-1/converse",
  ])("at %s the path names the model, and a cheaper one in the body hides nothing", async (path) => {
    const headers = { "x-user": path };
    const call = { model: "cheap-1", messages };
    const answers = [await post(call, headers, path), await post(call, headers, path)];
    expect(answers.map(({ status }) => status)).toEqual([200, 429]);
  });

  test("a stream that the path asks for, or that the server sends by default, takes a place among the streams", async () => {
    let release: () => void = () => undefined;
    fake.script.push({ hold: () => new Promise((resolve) => (release = resolve)) });
    const headers = { "x-room": "by-path" };
    const first = await post({ model: "fake-1", messages, stream: true }, headers);
    const paths = ["/v1beta/models/g:streamGenerateContent?alt=sse", "/model/m/converse-stream", "/api/chat"];
    const others = await Promise.all(paths.map((path) => post({ messages }, headers, path)));
    expect([first, ...others].map(({ status }) => status)).toEqual([200, 429, 429, 429]);
    release();
    await first.text();
  });

  test.each([true, "yes", 1])("stream: %j takes a place among the streams", async (stream) => {
    let release: () => void = () => undefined;
    fake.script.push({ hold: () => new Promise((resolve) => (release = resolve)) });
    const first = await post({ model: "fake-1", messages, stream: true }, { "x-room": "r" });
    const second = await post({ model: "fake-1", messages, stream }, { "x-room": "r" });
    expect([first.status, second.status]).toEqual([200, 429]);
    release();
    await first.text();
  });

  test.each(["by its length", "in chunks"])("a body that is too large is 413, %s", async (how) => {
    const text = JSON.stringify({ model: "fake-1", messages: ["x".repeat(BODY_LIMIT)] });
    const body = how === "in chunks" ? new Blob([text]).stream() : text;
    const answer = await fetch(service.proxy + chat, { method: "POST", body, duplex: "half" } as RequestInit);
    const { error } = (await answer.json()) as Json;
    expect([answer.status, error.code, fake.calls.length]).toEqual([413, "body_too_large", 0]);
    expect(error.message).toBe(`body: expected at most ${BODY_LIMIT} bytes`);
  });

  test("a body that comes byte by byte passes", async () => {
    const text = JSON.stringify({ model: "fake-2", messages });
    const socket = connect(Number(new URL(service.proxy!).port), "127.0.0.1");
    socket.write(`POST ${chat} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`);
    for (const character of text) socket.write(`1\r\n${character}\r\n`);
    socket.write("0\r\n\r\n");
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    await once(socket, "close");
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect([fake.calls[0]!.text, fake.calls[0]!.headers["transfer-encoding"]]).toEqual([text, undefined]);
  });

  test("a form that is no upload is held like any call: it may not be too large", async () => {
    const form = new FormData();
    form.set("file", new Blob([Buffer.alloc(BODY_LIMIT)]));
    const answer = await fetch(`${service.proxy}/v1/audio/transcriptions`, { method: "POST", body: form });
    expect([answer.status, fake.calls.length]).toEqual([413, 0]);
  });

  test("an upload passes as it is; a call that claims to be one is refused", async () => {
    const send = (body: string, path = chat) =>
      fetch(service.proxy + path, {
        method: "POST",
        headers: { "content-type": "multipart/form-data; boundary=b" },
        body,
      });
    const disguised = await send(JSON.stringify({ model: "fake-1", messages }));
    expect([disguised.status, ((await disguised.json()) as Json).error.message]).toEqual([
      400,
      "body: expected its boundary on a line of its own",
    ]);
    const upload = await send(JSON.stringify({ model: "fake-1", messages }), "/v1/files");
    expect([upload.status, ((await upload.json()) as Json).error.message]).toEqual([
      400,
      "body: expected its first boundary, because its content type is multipart",
    ]);
    expect(fake.calls).toEqual([]);
    const file = `--b\r\ncontent-disposition: form-data; name="file"\r\n\r\n${"x".repeat(200_000)}\r\n--b--\r\n`;
    for (const path of [chat, "/v1/files"]) await (await send(file, path)).text();
    expect(fake.calls.map(({ text }) => text)).toEqual([file, file]);
  });

  test("a client that leaves in the middle of its body is forgotten", async () => {
    const call = httpRequest(service.proxy + chat, { method: "POST", headers: { "content-length": "100" } });
    call.on("error", () => undefined);
    await new Promise<void>((resolve) => call.write('{"model":', () => resolve()));
    call.destroy();
    expect((await post({ model: "fake-1", messages })).status).toBe(200);
    expect(fake.calls.length).toBe(1);
  });

  test("a client that leaves in the middle of a stream cuts the vendor's call", async () => {
    let begun: () => void = () => undefined;
    const seen = new Promise<void>((resolve) => (begun = resolve));
    fake.script.push({
      hold: (token) => {
        if (token === 1) begun();
        return token === 1 ? new Promise(() => undefined) : Promise.resolve();
      },
    });
    const call = httpRequest(service.proxy + chat, { method: "POST", headers: { "content-type": "application/json" } });
    call.on("error", () => undefined).end(JSON.stringify({ model: "fake-9", messages, stream: true }));
    const [answer] = (await once(call, "response")) as [IncomingMessage];
    answer.on("error", () => undefined);
    await seen;
    answer.destroy();
    while (!fake.calls[0]!.wasCut) await new Promise((resolve) => setImmediate(resolve));
  });
});

describe("broken vendors", () => {
  test("an error of the vendor's reaches the client as it is", async () => {
    fake.script.push({ status: 529, headers: { "retry-after": "7" } });
    const answer = await post({ model: "fake-1", messages });
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([529, "7"]);
    expect(((await answer.json()) as Json).error.message).toBe("the fake vendor fails");
  });

  test("an answer that breaks off is not taken for a whole one", async () => {
    fake.script.push({ cut: true });
    const answer = await post({ model: "fake-100", messages });
    await expect(answer.text()).rejects.toThrow();
  });

  test("a vendor that cannot be reached is an error in its own shape", async () => {
    await using lonely = await startTestService({
      rules: [],
      settings: { upstream: "http://127.0.0.1:9", usage: "anthropic" },
    });
    const answer = await fetch(`${lonely.proxy}/v1/messages`, { method: "POST", body: "{}" });
    const { type, error } = (await answer.json()) as Json;
    expect([answer.status, type, error.type]).toEqual([502, "error", "api_error"]);
  });
});
