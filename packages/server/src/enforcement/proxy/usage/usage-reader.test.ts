import fc from "fast-check";
import type { BodyKind } from "sluice/internal";
import { expect, test } from "vitest";
import { tokensIn, UsageReader } from "./usage-reader.js";
import { vendorOf } from "./vendors.js";

function usageOf(usage: string, kind: BodyKind, text: string, { isWhole = true, places = [] as number[] } = {}) {
  const reader = new UsageReader({ vendor: vendorOf(usage), kind });
  const whole = Buffer.from(text);
  const ends = [...places.map((place) => place % (whole.length + 1)), whole.length].sort((a, b) => a - b);
  for (const [i, end] of ends.entries()) reader.push(whole.subarray(ends[i - 1] ?? 0, end));
  return reader.usage({ isWhole });
}

const sse = (...events: unknown[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
const delta = (content: string) => ({ choices: [{ index: 0, delta: { content } }], usage: null });

test("OpenAI's JSON answers", () => {
  const answer = {
    choices: [{ message: { content: "hello" } }],
    usage: {
      prompt_tokens: 11,
      completion_tokens: 7,
      total_tokens: 18,
      prompt_tokens_details: { cached_tokens: 4 },
    },
  };
  expect(usageOf("openai", "json", JSON.stringify(answer))).toMatchObject({
    prompt: 11,
    completion: 7,
    cachedPrompt: 4,
  });
});

test("embeddings have no completion", () => {
  const answer = { data: [{ embedding: [0.1, -2e-5] }], usage: { prompt_tokens: 8, total_tokens: 8 } };
  expect(usageOf("openai", "json", JSON.stringify(answer))).toMatchObject({ prompt: 8, completion: 0 });
});

test("OpenAI's streams: chat, responses, and a final usage event", () => {
  const last = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 40 } };
  const stream = `${sse(delta("x".repeat(400)), last)}data: [DONE]\n\n`;
  expect(usageOf("openai", "events", stream)).toMatchObject({ prompt: 5, completion: 40, cachedPrompt: 0 });
  const completed = { type: "response.completed", response: { usage: { input_tokens: 3, output_tokens: 9 } } };
  expect(usageOf("openai", "events", sse({ delta: "abcd" }, completed))).toMatchObject({ prompt: 3, completion: 9 });
});

const anthropicStart = {
  type: "message_start",
  message: {
    usage: { input_tokens: 10, cache_read_input_tokens: 90, cache_creation_input_tokens: 5, output_tokens: 1 },
  },
};
const anthropicDelta = (text: string) => ({ type: "content_block_delta", delta: { type: "text_delta", text } });

test("Anthropic's streams: input at the start, running totals of the output, cache beside the input", () => {
  const stream = sse(anthropicStart, anthropicDelta("hi"), { type: "message_delta", usage: { output_tokens: 25 } });
  const cache = { cachedPrompt: 90, cacheWrite: 5 };
  expect(usageOf("anthropic", "events", stream)).toEqual({ prompt: 105, completion: 25, ...cache });
});

test("the count in Anthropic's first event is preliminary: a broken-off stream is counted by its text", () => {
  const stream = sse(anthropicStart, anthropicDelta("x".repeat(401)));
  for (const isWhole of [true, false]) {
    expect(usageOf("anthropic", "events", stream, { isWhole })).toMatchObject({ prompt: 105, completion: 101 });
  }
});

test("a gateway that reports Anthropic's cache under OpenAI's names includes it in the prompt", () => {
  const usage = {
    prompt_tokens: 2006,
    completion_tokens: 300,
    total_tokens: 2306,
    prompt_tokens_details: { cached_tokens: 1920 },
    cache_read_input_tokens: 1920,
    cache_creation_input_tokens: 50,
  };
  const read = usageOf("openai", "json", JSON.stringify({ usage }));
  expect(read).toEqual({ prompt: 2006, completion: 300, cachedPrompt: 1920, cacheWrite: 50 });
});

test("tokens that a vendor reports beside answer and prompt are added to them", () => {
  const gemini = { promptTokenCount: 10, candidatesTokenCount: 20, thoughtsTokenCount: 900, totalTokenCount: 930 };
  const readGemini = usageOf("/usageMetadata", "json", JSON.stringify({ usageMetadata: gemini }));
  expect(readGemini).toMatchObject({ prompt: 10, completion: 920 });
  const bedrock = { inputTokens: 5, outputTokens: 7, cacheReadInputTokens: 100, cacheWriteInputTokens: 30 };
  const readBedrock = usageOf("/usage", "json", JSON.stringify({ usage: bedrock }));
  expect(readBedrock).toEqual({ prompt: 135, completion: 7, cachedPrompt: 100, cacheWrite: 30 });
});

test.each([
  ["a byte order mark", "\uFEFF"],
  ["events under the name of JSON", "data: "],
])("an answer that is no JSON, for %s, is counted by its bytes", (_, before) => {
  const answer = before + JSON.stringify({ choices: [{ message: { content: "x".repeat(400) } }] });
  const completion = tokensIn(Buffer.byteLength(answer));
  expect(usageOf("openai", "json", answer)).toMatchObject({ prompt: undefined, completion });
});

test("bytes after a complete answer do not change its usage", () => {
  expect(usageOf("openai", "json", '{"usage":{"completion_tokens":3}}!!!!!!!!')).toMatchObject({ completion: 3 });
});

test("without usage the text is counted at four bytes per token; the prompt stays unknown", () => {
  expect(usageOf("openai", "events", sse(delta("12345678"), delta("9")))).toEqual({
    prompt: undefined,
    completion: 3,
    cachedPrompt: 0,
    cacheWrite: 0,
  });
  expect(usageOf("openai", "unread", "x".repeat(41))).toMatchObject({ completion: 11 });
});

const part = (delta: object) => ({ choices: [{ delta }] });
const long = "x".repeat(400);

test.each([
  ["openai", part({ function_call: { name: "f", arguments: long } })],
  ["openai", part({ tool_calls: [{ custom: { input: long } }] })],
  ["openai", part({ reasoning: long })],
  ["openai", part({ audio: { id: "a", transcript: long } })],
  ["openai", { delta: { content: [{ text: { value: long } }] } }],
  ["openai", { delta: { step_details: { tool_calls: [{ code_interpreter: { input: long } }] } } }],
  ["openai", part({ content: [{ type: "text", text: long }] })],
  ["openai", part({ content: [{ type: "thinking", thinking: [{ type: "text", text: long }] }] })],
  ["anthropic", { completion: long }],
  ["/", { message: { role: "assistant", content: "", thinking: long } }],
])("a broken-off stream of %s costs what it carried, in any format the client may request (%#)", (usage, event) => {
  expect(usageOf(usage, "events", sse(event), { isWhole: false })).toMatchObject({ completion: 100 });
});

const base64 = "iVBORw0K".repeat(16 * 1_024);
const image = 128;

test.each([
  ["openai", "events", part({ audio: { data: base64 } }), image],
  ["openai", "events", part({ images: [{ image_url: { url: base64 } }] }), image],
  ["openai", "events", { type: "response.image_generation_call.partial_image", partial_image_b64: base64 }, image],
  ["openai", "events", { type: "response.output_item.done", item: { result: base64 } }, image],
  ["openai", "events", { type: "image_generation.partial_image", b64_json: base64 }, image],
  ["openai", "events", { type: "speech.audio.delta", audio: base64 }, image],
  ["openai", "json", { choices: [{ message: { audio: { data: base64, transcript: long } } }] }, image + 100],
  ["openai", "json", { created: 1, data: [{ b64_json: base64 }, { url: "https://images.example/1" }] }, image + 1_000],
  ["openai", "json", { output: [{ type: "image_generation_call", result: base64 }] }, image],
  ["openai", "json", { text: long }, 100],
  ["openai", "events", { type: "response.output_text.done", text: long }, 0],
  ["/usageMetadata", "json", { candidates: [{ content: { parts: [{ inlineData: { data: base64 } }] } }] }, image],
] as const)(
  "an answer of %s that reports no usage costs its images and sounds: a token for a KiB, a thousand for a link (%#)",
  (usage, kind, answer, completion) => {
    for (const isWhole of [true, false]) {
      const body = kind === "events" ? sse(answer) : JSON.stringify(answer);
      expect(usageOf(usage, kind, body, { isWhole, places: [50, 20_000] })).toMatchObject({ completion });
    }
    const cut = JSON.stringify(answer).slice(0, 65_000);
    if (completion === image)
      expect(usageOf(usage, "json", cut, { isWhole: false }).completion).toBeGreaterThanOrEqual(63);
  },
);

test("an audio body costs a token per KiB, any other non-JSON body a token per four bytes", () => {
  const reader = (isMedia: boolean) => {
    const media = new UsageReader({ vendor: vendorOf("openai"), kind: "unread", isMedia });
    media.push(Buffer.alloc(10_240));
    return media.usage({ isWhole: true }).completion;
  };
  expect([reader(true), reader(false)]).toEqual([10, 2_560]);
});

const call = { ["n".repeat(400)]: [1234, true, { deep: long }], more: null };
/** The names, the values and nothing else. */
const CALLED = tokensIn(400 + 4 + 4 + 4 + 400 + 4 + 4);

test.each([
  [
    "anthropic",
    {
      content: [
        { type: "tool_use", name: "f", input: call },
        { type: "text", text: "1234" },
      ],
    },
  ],
  ["/usageMetadata", { candidates: [{ content: { parts: [{ functionCall: { args: call } }, { text: "1234" }] } }] }],
  ["/", { message: { tool_calls: [{ function: { name: "f", arguments: call } }], content: "1234" } }],
  [
    "/",
    {
      message: {
        tool_calls: [{ function: { name: "f", arguments: "x".repeat(820) } }],
        content: "1234",
      },
    },
  ],
] as const)("what a model of %s passes to a tool is text, with its names and numbers (%#)", (usage, answer) => {
  for (const places of [[], [40, 300, 700]])
    expect(usageOf(usage, "json", JSON.stringify(answer), { places })).toMatchObject({ completion: CALLED + 1 });
});

test("a number inside a tool's input is no usage, one after it is", () => {
  const answer = {
    content: [{ type: "tool_use", input: { usage: { output_tokens: 1e9 } } }],
    usage: { output_tokens: 7 },
  };
  expect(usageOf("anthropic", "json", JSON.stringify(answer))).toMatchObject({ completion: 7 });
});

test.each([
  ["openai", "json", `{"id":"abc","choices":[{"message":{"content":"${long}`, 100],
  ["openai", "json", `{"id":"abc","choices":[{"message":{"content":"${long}\\`, 101],
  ["openai", "events", `data: {"choices":[{"delta":{"content":"${long}"}}]}\n\ndata: {"delta":"${long}`, 200],
  ["anthropic", "json", `{"content":[{"type":"text","text":"${long}`, 100],
  ["/usage", "lines", `{"response":"${long}`, 100],
  ["openai", "json", `{"id":"${long}`, 0],
  ["openai", "json", `{"${long}`, 0],
] as const)(
  "of %s, %s that is broken off in the middle of a string costs what had come (%#)",
  (usage, kind, text, completion) => {
    for (const places of [[], [50, 200, 333]]) {
      expect(usageOf(usage, kind, text, { isWhole: false, places })).toMatchObject({ completion });
    }
  },
);

test("reasoning reported under both names is counted once", () => {
  const stream = sse(part({ reasoning: long, reasoning_content: long }), part({ content: "1234" }));
  expect(usageOf("openai", "events", stream, { isWhole: false })).toMatchObject({ completion: 101 });
});

test("usage reported repeatedly is a running total: the largest counts", () => {
  const usage = (completion_tokens: number) => ({ ...delta("x"), usage: { prompt_tokens: 5, completion_tokens } });
  expect(usageOf("openai", "events", sse(usage(3), usage(7), delta("y"), usage(6)))).toMatchObject({ completion: 7 });
});

test.each([-1, 1e300, 0.5, "7", null, true, [7], { n: 7 }])("a count of %j is none", (completion_tokens) => {
  expect(usageOf("openai", "json", JSON.stringify({ usage: { completion_tokens } }))).toMatchObject({ completion: 0 });
});

test.each(["40.0", "4e1", "4.0E+1"])("a whole number written as %s is a count", (count) => {
  const answer = `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":5.0,"completion_tokens":${count}}}`;
  expect(usageOf("openai", "json", answer)).toMatchObject({ prompt: 5, completion: 40 });
});

test("Kimi's streams report usage in the last choice, not in a separate event", () => {
  const last = { choices: [{ index: 0, delta: {}, usage: { prompt_tokens: 5, completion_tokens: 40 } }] };
  expect(usageOf("openai", "events", sse(delta("12345678"), last))).toMatchObject({ prompt: 5, completion: 40 });
});

test.each<[BodyKind, string, string]>([
  ["json", "", ""],
  ["events", "data: ", ""],
  ["events", "data: ", "\n\ndata: [DONE]\n\n"],
  ["lines", "", "\n{}\n"],
])("%s that ends within a number has not reported it: its first digits are another number", (kind, before, behind) => {
  const cut = '{"choices":[{"delta":{"content":"12345678"}}],"usage":{"prompt_tokens":5,"completion_tokens":4';
  const { prompt, completion } = usageOf("openai", kind, before + cut + behind);
  // All bytes of an invalid document.
  expect([prompt, completion]).toEqual([5, tokensIn(cut.length)]);
});

test("a reported 0 counts only if there was no text", () => {
  const none = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 0, total_tokens: 5 } };
  expect(usageOf("openai", "events", sse(delta("12345678"), none))).toMatchObject({ prompt: 5, completion: 2 });
  expect(usageOf("openai", "events", sse(none))).toMatchObject({ prompt: 5, completion: 0 });
});

test("an absurd count is capped at a billion", () => {
  expect(usageOf("openai", "json", '{"usage":{"completion_tokens":999999999999999}}').completion).toBe(1_000_000_000);
});

test.each([
  ["/usageMetadata", { usageMetadata: { promptTokenCount: 2, candidatesTokenCount: 3, totalTokenCount: 5 } }, 2, 3],
  ["/usage", { usage: { inputTokens: 2, outputTokens: 3 } }, 2, 3],
  ["/", { response: "hi", done: true, prompt_eval_count: 2, eval_count: 3 }, 2, 3],
  ["/meta/billed~1units", { meta: { "billed/units": 12 } }, undefined, 12],
])("a JSON pointer such as %s reads other vendors", (pointer, answer, prompt, completion) => {
  expect(usageOf(pointer, "json", JSON.stringify(answer))).toMatchObject({ prompt, completion });
});

test("one document per line, however the lines are split", () => {
  const lines = `${JSON.stringify({ response: "abcd" })}\n${JSON.stringify({ prompt_eval_count: 2, eval_count: 3 })}\n`;
  for (let place = 0; place < lines.length; place++) {
    expect(usageOf("/", "lines", lines, { places: [place] })).toMatchObject({ prompt: 2, completion: 3 });
  }
});

test("usage is the same however the stream is split", () => {
  const event = fc.constantFrom<unknown>(
    delta('täxt " \\ 😀'),
    { choices: [], usage: { prompt_tokens: 5, completion_tokens: 40 } },
    { choices: [{ delta: {} }], usage: null },
    "[DONE]",
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 30 }), (events, places) => {
      const stream = sse(...events);
      expect(usageOf("openai", "events", stream, { places })).toEqual(usageOf("openai", "events", stream));
    }),
  );
});

test("an endless line of 50 MB is read without being buffered", () => {
  const reader = new UsageReader({ vendor: vendorOf("openai"), kind: "events" });
  reader.push(Buffer.from('data: {"choices":[{"delta":{"content":"'));
  const piece = Buffer.alloc(64 * 1024, "x");
  for (let i = 0; i < 800; i++) reader.push(piece);
  // The client has received them, whether or not the string ever ends.
  expect(reader.usage({ isWhole: false }).completion).toBe(tokensIn(800 * piece.length));
  reader.push(Buffer.from('"}}]}\n\n'));
  reader.push(Buffer.from(sse({ choices: [], usage: { completion_tokens: 9 } })));
  expect(reader.usage({ isWhole: true }).completion).toBe(9);
  expect(reader.usage({ isWhole: false }).completion).toBe(tokensIn(800 * piece.length));
});

test("an event with usage and no choice is recognised", () => {
  const found: boolean[] = [];
  const reader = new UsageReader({
    vendor: vendorOf("openai"),
    kind: "events",
    onEvent: ({ isUsageOnly }) => found.push(isUsageOnly),
  });
  const usage = { completion_tokens: 3 };
  const filter = { choices: [], prompt_filter_results: [] };
  reader.push(Buffer.from(sse(filter, { ...delta("x"), usage }, { choices: [], usage }, { choices: [], usage: null })));
  expect(found).toEqual([false, false, true, false]);
});

test.each([
  ["events", "text", (text: string) => `data: ${text}\n\n`],
  ["events", "text of several lines", (text: string) => `data: ${text.slice(0, 200)}\ndata: ${text.slice(201)}\n\n`],
  ["events", "JSON that ends too early", (text: string) => `data: {"${text.slice(2)}\n\n`],
  ["events", "a JSON string", (text: string) => `data: "${text}"\n\n`],
  ["events", "no end", (text: string) => `data: {]${text.slice(2)}`],
  [
    "events",
    "a word without an end",
    (text: string) => `data: ${text.replaceAll(" ", "x").repeat(10).slice(0, 4_000)}`,
  ],
  ["events", "no field", (text: string) => `${text}\n`],
  ["events", "no field and no line", (text: string) => text],
  ["lines", "text", (text: string) => `${text}\n`],
  ["json", "a word", (text: string) => text.replaceAll(" ", "x")],
  ["json", "JSON that ends too early", (text: string) => `{"${text.slice(2)}`],
] as const)(
  "%s of a whole answer that hold %s are counted by their bytes, however they are cut",
  (kind, _, spelled) => {
    const text = "some text ".repeat(40);
    const body = spelled(text);
    const tokens = body.length > 1_000 ? 1_000 : 100;
    for (const places of [[], [3, 8, 9, 300], [...body].map((_, i) => i)]) {
      expect(usageOf("openai", kind, body, { places })).toMatchObject({ prompt: undefined, completion: tokens });
    }
  },
);

test("in a document that turns out to be invalid JSON, text is counted once", () => {
  const event = `data: ${JSON.stringify(delta("x".repeat(400)))}!!\n\n`;
  expect(usageOf("openai", "events", event)).toMatchObject({
    completion: tokensIn(event.length - "data: \n\n".length),
  });
});

test("the end-of-stream marker, comments and other event fields cost nothing", () => {
  const rest = `: still working on it\n\nevent: message\nid: 7\nretry: 10\nid\n${sse(delta("12345678"))}data: [DONE]\n\n`;
  for (const places of [[], [...rest].map((_, i) => i)])
    expect(usageOf("openai", "events", rest, { places })).toMatchObject({ completion: 2 });
});
