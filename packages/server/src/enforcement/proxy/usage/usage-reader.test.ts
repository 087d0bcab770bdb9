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
  expect(usageOf("openai", "json", JSON.stringify(answer))).toEqual({ prompt: 11, completion: 7, cachedPrompt: 4 });
});

test("embeddings have no completion", () => {
  const answer = { data: [{ embedding: [0.1, -2e-5] }], usage: { prompt_tokens: 8, total_tokens: 8 } };
  expect(usageOf("openai", "json", JSON.stringify(answer))).toMatchObject({ prompt: 8, completion: 0 });
});

test("OpenAI's streams: chat, responses, and a last event with usage", () => {
  const last = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 40 } };
  const stream = `${sse(delta("x".repeat(400)), last)}data: [DONE]\n\n`;
  expect(usageOf("openai", "events", stream)).toEqual({ prompt: 5, completion: 40, cachedPrompt: 0 });
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
  expect(usageOf("anthropic", "events", stream)).toEqual({ prompt: 105, completion: 25, cachedPrompt: 90 });
});

test("the count at Anthropic's start is no final one: a stream that breaks off is counted by its text", () => {
  const stream = sse(anthropicStart, anthropicDelta("x".repeat(401)));
  for (const isWhole of [true, false]) {
    expect(usageOf("anthropic", "events", stream, { isWhole })).toMatchObject({ prompt: 105, completion: 101 });
  }
});

test("a gateway that reports Anthropic's cache under OpenAI's names has it in its prompt already", () => {
  const usage = {
    prompt_tokens: 2006,
    completion_tokens: 300,
    total_tokens: 2306,
    prompt_tokens_details: { cached_tokens: 1920 },
    cache_read_input_tokens: 1920,
    cache_creation_input_tokens: 50,
  };
  const read = usageOf("openai", "json", JSON.stringify({ usage }));
  expect(read).toEqual({ prompt: 2006, completion: 300, cachedPrompt: 1920 });
});

test("tokens that a vendor counts beside the answer and the prompt are counted with them", () => {
  const gemini = { promptTokenCount: 10, candidatesTokenCount: 20, thoughtsTokenCount: 900, totalTokenCount: 930 };
  const readGemini = usageOf("/usageMetadata", "json", JSON.stringify({ usageMetadata: gemini }));
  expect(readGemini).toMatchObject({ prompt: 10, completion: 920 });
  const bedrock = { inputTokens: 5, outputTokens: 7, cacheReadInputTokens: 100, cacheWriteInputTokens: 30 };
  const readBedrock = usageOf("/usage", "json", JSON.stringify({ usage: bedrock }));
  expect(readBedrock).toEqual({ prompt: 135, completion: 7, cachedPrompt: 100 });
});

test.each([
  ["a byte order mark", "\uFEFF"],
  ["events under the name of JSON", "data: "],
])("an answer that is no JSON, for %s, is counted by its bytes", (_, before) => {
  const answer = before + JSON.stringify({ choices: [{ message: { content: "x".repeat(400) } }] });
  const completion = tokensIn(Buffer.byteLength(answer));
  expect(usageOf("openai", "json", answer)).toMatchObject({ prompt: undefined, completion });
});

test("bytes behind a whole answer do not change what it reports", () => {
  expect(usageOf("openai", "json", '{"usage":{"completion_tokens":3}}!!!!!!!!')).toMatchObject({ completion: 3 });
});

test("without usage the text is counted, a token for four bytes; the prompt stays unknown", () => {
  expect(usageOf("openai", "events", sse(delta("12345678"), delta("9")))).toEqual({
    prompt: undefined,
    completion: 3,
    cachedPrompt: 0,
  });
  expect(usageOf("openai", "unread", "x".repeat(41))).toMatchObject({ completion: 11 });
});

const part = (delta: object) => ({ choices: [{ delta }] });
const long = "x".repeat(400);

test.each([
  ["openai", part({ function_call: { name: "f", arguments: long } })],
  ["openai", part({ tool_calls: [{ custom: { input: long } }] })],
  ["openai", part({ reasoning: long })],
  ["openai", part({ audio: { id: "a", data: "AAAA", transcript: long } })],
  ["openai", { delta: { content: [{ text: { value: long } }] } }],
  ["openai", { delta: { step_details: { tool_calls: [{ code_interpreter: { input: long } }] } } }],
  ["openai", part({ content: [{ type: "text", text: long }] })],
  ["openai", part({ content: [{ type: "thinking", thinking: [{ type: "text", text: long }] }] })],
  ["anthropic", { completion: long }],
  ["/", { message: { role: "assistant", content: "", thinking: long } }],
])(
  "a stream of %s that is broken off costs what it carried, in whichever form the client asked for (%#)",
  (usage, event) => {
    expect(usageOf(usage, "events", sse(event), { isWhole: false })).toMatchObject({ completion: 100 });
  },
);

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

test("reasoning under both of its names is counted once", () => {
  const stream = sse(part({ reasoning: long, reasoning_content: long }), part({ content: "1234" }));
  expect(usageOf("openai", "events", stream, { isWhole: false })).toMatchObject({ completion: 101 });
});

test("usage that comes twice, or in the middle, is a running total: the largest counts", () => {
  const usage = (completion_tokens: number) => ({ ...delta("x"), usage: { prompt_tokens: 5, completion_tokens } });
  expect(usageOf("openai", "events", sse(usage(3), usage(7), delta("y"), usage(6)))).toMatchObject({ completion: 7 });
});

test.each([-1, 1e300, 0.5, "7", null, true, [7], { n: 7 }])("a count of %j is none", (completion_tokens) => {
  expect(usageOf("openai", "json", JSON.stringify({ usage: { completion_tokens } }))).toMatchObject({ completion: 0 });
});

test("0 tokens for a text is no count, and for no text it is one", () => {
  const none = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 0, total_tokens: 5 } };
  expect(usageOf("openai", "events", sse(delta("12345678"), none))).toMatchObject({ prompt: 5, completion: 2 });
  expect(usageOf("openai", "events", sse(none))).toMatchObject({ prompt: 5, completion: 0 });
});

test("an absurd count is held to a thousand million", () => {
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

test("a document a line, however the lines are cut", () => {
  const lines = `${JSON.stringify({ response: "abcd" })}\n${JSON.stringify({ prompt_eval_count: 2, eval_count: 3 })}\n`;
  for (let place = 0; place < lines.length; place++) {
    expect(usageOf("/", "lines", lines, { places: [place] })).toMatchObject({ prompt: 2, completion: 3 });
  }
});

test("usage is the same however the stream is cut", () => {
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

test("a line of 50 MB without an end is read without being held", () => {
  const reader = new UsageReader({ vendor: vendorOf("openai"), kind: "events" });
  reader.push(Buffer.from('data: {"choices":[{"delta":{"content":"'));
  const piece = Buffer.alloc(64 * 1024, "x");
  for (let i = 0; i < 800; i++) reader.push(piece);
  // The client has them, whether or not the string will end.
  expect(reader.usage({ isWhole: false }).completion).toBe(tokensIn(800 * piece.length));
  reader.push(Buffer.from('"}}]}\n\n'));
  reader.push(Buffer.from(sse({ choices: [], usage: { completion_tokens: 9 } })));
  expect(reader.usage({ isWhole: true }).completion).toBe(9);
  expect(reader.usage({ isWhole: false }).completion).toBe(tokensIn(800 * piece.length));
});

test("an event that reports usage and carries no choice is told apart", () => {
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

test("of a document that is no JSON in the end, text is counted once", () => {
  const event = `data: ${JSON.stringify(delta("x".repeat(400)))}!!\n\n`;
  expect(usageOf("openai", "events", event)).toMatchObject({
    completion: tokensIn(event.length - "data: \n\n".length),
  });
});

test("the mark at a stream's end, comments and the other fields of events cost nothing", () => {
  const rest = `: still working on it\n\nevent: message\nid: 7\nretry: 10\nid\n${sse(delta("12345678"))}data: [DONE]\n\n`;
  for (const places of [[], [...rest].map((_, i) => i)])
    expect(usageOf("openai", "events", rest, { places })).toMatchObject({ completion: 2 });
});
