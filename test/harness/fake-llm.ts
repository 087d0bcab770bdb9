/**
 * A vendor of language models for tests: OpenAI's chat completions, embeddings and responses, Anthropic's messages. Deterministic, streaming.
 * A prompt counts a token a word. The answer has as many tokens as the model's name ends in (`fake-40`), or the call's bound if
 * that is less; each token is the text "word ".
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";

export interface FakeCall {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a call is asserted field by field, not typed.
  readonly body: any;
  /** Whether the client went away before the answer was whole. */
  wasCut: boolean;
}

export interface FakeLlm extends AsyncDisposable {
  readonly url: string;
  readonly calls: FakeCall[];
  /** Of the next calls, one each: a status of 400 and above is an error; `cut`: ends in the middle; `hold`: waits before each token. */
  readonly script: FakeTurn[];
  close(): Promise<void>;
}

export interface FakeTurn {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cut?: true;
  readonly noUsage?: true;
  readonly gzip?: true;
  /** Line ends of the stream. */
  readonly lineEnd?: string;
  /** Called before each token; the answer waits. */
  readonly hold?: (token: number) => Promise<void>;
}

export async function startFakeLlm(): Promise<FakeLlm> {
  const calls: FakeCall[] = [];
  const script: FakeTurn[] = [];
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const call: FakeCall = {
      path: request.url!,
      headers: request.headers,
      text,
      body: text.startsWith("{") ? JSON.parse(text) : undefined,
      wasCut: false,
    };
    calls.push(call);
    response.once("close", () => {
      call.wasCut = !response.writableFinished;
    });
    const turn = script.shift() ?? {};
    // The answer does not begin.
    if (call.body?.wait === true) return;
    if ((turn.status ?? 200) >= 400) sendError(call, response, turn);
    else if (call.body?.stream === true) await sendStream(call, response, turn);
    else sendWhole(call, response, turn);
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, calls, script, close, [Symbol.asyncDispose]: close };
}

const isAnthropic = (call: FakeCall): boolean => call.path.endsWith("/messages");

export function promptTokens({ body }: FakeCall): number {
  return JSON.stringify(body?.messages ?? body?.input ?? "").match(/\w+/g)?.length ?? 0;
}

function completionTokens({ body }: FakeCall): number {
  const wanted = Number(/\d+$/.exec(body?.model ?? "")?.[0] ?? 10);
  const bound = body?.max_completion_tokens ?? body?.max_tokens ?? body?.max_output_tokens;
  return Number.isInteger(bound) && bound >= 0 ? Math.min(wanted, bound) : wanted;
}

const TOKEN = "word ";

function sendError(call: FakeCall, response: ServerResponse, { status, headers }: FakeTurn): void {
  response.writeHead(status!, { "content-type": "application/json", ...headers });
  const error = { type: "server_error", message: "the fake vendor fails", param: null, code: null };
  response.end(JSON.stringify(isAnthropic(call) ? { type: "error", error } : { error }));
}

function sendWhole(call: FakeCall, response: ServerResponse, { headers, noUsage, gzip, cut }: FakeTurn): void {
  const text = TOKEN.repeat(completionTokens(call));
  const answer = isAnthropic(call) ? anthropicMessage(call, text) : openaiAnswer(call, text);
  const { usage, ...rest } = answer;
  const json = Buffer.from(JSON.stringify(noUsage ? rest : answer));
  const bytes = gzip ? gzipSync(json) : json;
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": bytes.length,
    ...(gzip && { "content-encoding": "gzip" }),
    ...headers,
  });
  if (cut) response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
  else response.end(bytes);
}

function openaiAnswer(call: FakeCall, content: string): Record<string, unknown> {
  const prompt_tokens = promptTokens(call);
  const { model } = call.body;
  if (call.path.endsWith("/embeddings")) {
    const data = [{ object: "embedding", index: 0, embedding: [0.25, -0.5] }];
    return { object: "list", model, data, usage: { prompt_tokens, total_tokens: prompt_tokens } };
  }
  const completion_tokens = completionTokens(call);
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model,
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
  };
}

function anthropicMessage(call: FakeCall, text: string): Record<string, unknown> {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: call.body.model,
    content: [{ type: "text", text }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: promptTokens(call), output_tokens: completionTokens(call) },
  };
}

async function sendStream(call: FakeCall, response: ServerResponse, turn: FakeTurn): Promise<void> {
  const { lineEnd = "\n", hold, cut, headers } = turn;
  response.writeHead(200, { "content-type": "text/event-stream", ...headers });
  const send = (event: object, name?: string): void => {
    const lines = [...(name === undefined ? [] : [`event: ${name}`]), `data: ${JSON.stringify(event)}`, "", ""];
    response.write(lines.join(lineEnd));
  };
  const stream = isAnthropic(call) ? anthropicEvents : openaiEvents;
  const { before, token, behind } = stream(call, turn);
  for (const [event, name] of before) send(event, name);
  const count = completionTokens(call);
  for (let i = 0; i < count; i++) {
    await hold?.(i);
    if (cut && i >= count / 2) return void response.destroy();
    send(...token);
  }
  for (const [event, name] of behind) send(event, name);
  response.end(isAnthropic(call) ? "" : `data: [DONE]${lineEnd}${lineEnd}`);
}

type Event = [event: object, name?: string];
interface Events {
  readonly before: Event[];
  readonly token: Event;
  readonly behind: Event[];
}

function openaiEvents(call: FakeCall, { noUsage }: FakeTurn): Events {
  const asked = call.body.stream_options?.include_usage === true && noUsage !== true;
  const chunk = (choice: object): object => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: call.body.model,
    choices: [{ index: 0, finish_reason: null, ...choice }],
    ...(asked && { usage: null }),
  });
  const prompt_tokens = promptTokens(call);
  const completion_tokens = completionTokens(call);
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
  return {
    before: [[chunk({ delta: { role: "assistant", content: "" } })]],
    token: [chunk({ delta: { content: TOKEN } })],
    behind: [
      [chunk({ delta: {}, finish_reason: "stop" })],
      ...(asked ? [[{ ...chunk({}), choices: [], usage }] as Event] : []),
    ],
  };
}

function anthropicEvents(call: FakeCall, { noUsage }: FakeTurn): Events {
  const event = (type: string, rest: object): Event => [{ type, ...rest }, type];
  const { content, stop_reason, usage, ...message } = anthropicMessage(call, "");
  const first = { input_tokens: promptTokens(call), output_tokens: 1 };
  const last = { output_tokens: completionTokens(call) };
  return {
    before: [
      event("message_start", {
        message: { ...message, content: [], stop_reason: null, ...(!noUsage && { usage: first }) },
      }),
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ],
    token: event("content_block_delta", { index: 0, delta: { type: "text_delta", text: TOKEN } }),
    behind: [
      event("content_block_stop", { index: 0 }),
      event("message_delta", {
        delta: { stop_reason: "end_turn", stop_sequence: null },
        ...(!noUsage && { usage: last }),
      }),
      event("message_stop", {}),
    ],
  };
}
