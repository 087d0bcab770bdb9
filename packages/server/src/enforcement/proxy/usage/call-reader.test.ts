import fc from "fast-check";
import { expect, test } from "vitest";
import { type CallFacts, CallReader } from "./call-reader.js";
import { tokensIn } from "./usage-reader.js";
import { vendorOf } from "./vendors.js";

function read(
  text: string,
  places: readonly number[] = [],
): { facts: CallFacts | undefined; mistake: string | undefined } {
  const reader = new CallReader();
  const whole = Buffer.from(text);
  const ends = [...places.map((place) => place % (whole.length + 1)), whole.length].sort((a, b) => a - b);
  for (const [i, end] of ends.entries()) reader.push(whole.subarray(ends[i - 1] ?? 0, end));
  return { facts: reader.end(), mistake: reader.mistake };
}

const factsOf = (body: unknown) => read(JSON.stringify(body)).facts!;

/** The parsed body after applying the splice. */
function spliced(text: string): unknown {
  const { askForUsage } = read(text).facts!;
  if (askForUsage === undefined) return undefined;
  const whole = Buffer.from(text);
  const { start, end, text: put } = askForUsage;
  return JSON.parse(Buffer.concat([whole.subarray(0, start), Buffer.from(put), whole.subarray(end)]).toString());
}

test("a call's model, stream, bound and prompt", () => {
  expect(
    factsOf({ model: "gpt-5", stream: true, max_tokens: 50, messages: [{ role: "user", content: "12345678" }] }),
  ).toMatchObject({
    model: "gpt-5",
    isStream: true,
    maxTokens: 50,
    // "gpt-5", "user" and the content.
    promptTokens: 5,
  });
  expect(factsOf({})).toMatchObject({ model: undefined, isStream: false, maxTokens: undefined, promptTokens: 0 });
});

test.each([
  [{ max_completion_tokens: 7 }, 7],
  [{ max_output_tokens: 8 }, 8],
  [{ max_tokens: 5, max_completion_tokens: 9 }, 9],
  [{ max_tokens: 10, n: 4 }, 40],
  [{ max_tokens: 10, n: 2, best_of: 3 }, 30],
  [{ generationConfig: { maxOutputTokens: 6 } }, 6],
  [{ generationConfig: { maxOutputTokens: 1 }, generation_config: { max_output_tokens: 900 } }, 900],
  [{ generationConfig: { maxOutputTokens: 6, candidateCount: 8 } }, 48],
  [{ max_tokens: 16, prompt: "one" }, 16],
  [{ max_tokens: 16, prompt: ["one", "two", "three"], n: 2 }, 96],
  [{ max_tokens: 16, prompt: [[1, 2, 3], [4]] }, 32],
  [{ max_tokens: 16, prompt: [1, 2, 3] }, 16],
  [{ options: { num_predict: 6 } }, 6],
  [{ max_tokens: 1_000_000_000, n: 128 }, 1_000_000_000],
])("the bound of %j is %i", (body, bound) => {
  expect(factsOf(body).maxTokens).toBe(bound);
});

test.each([
  { max_tokens: 10, max_completion_tokens: "5000" },
  { max_tokens: 10, max_completion_tokens: -1 },
  { max_tokens: 10, max_completion_tokens: 5000.5 },
  { max_tokens: 10, max_completion_tokens: [5000] },
  { max_tokens: 10, n_predict: "5000" },
  { max_tokens: 10, n: "128" },
  { max_tokens: 10, n: 0.5, best_of: 3 },
])("%j has no bound: servers take one of its names, and read it in ways of their own", (body) => {
  expect(factsOf(body).maxTokens).toBeUndefined();
  expect(factsOf({ ...body, max_completion_tokens: null, n_predict: null, n: null }).maxTokens).toBe(
    10 * ("best_of" in body ? 3 : 1),
  );
});

test.each([-1, 0, 1e300, 0.5, "5", null, true, [5], { a: 5 }])("a bound of %j is none", (max_tokens) => {
  expect(factsOf({ max_tokens }).maxTokens).toBeUndefined();
});

test("a nested bound, or one inside a string, does not count", () => {
  expect(
    factsOf({ metadata: { max_tokens: 5 }, messages: ['"max_tokens": 6'], "a/max_tokens": 1 }).maxTokens,
  ).toBeUndefined();
});

test.each([
  [true, true],
  ["yes", true],
  [1, true],
  [{}, true],
  [false, false],
  [null, false],
])("stream: %j counts as %s", (stream, isStream) => {
  expect(factsOf({ stream }).isStream).toBe(isStream);
});

test.each([
  ['{"model":"a","model":"b"}', "model: expected once, got twice"],
  ['{"model":"a","\\u006dodel":"b"}', "model: expected once, got twice"],
  ['{"max_tokens":1,"max_tokens":1}', "max_tokens: expected once, got twice"],
  [
    '{"stream_options":{"include_usage":true,"include_usage":false}}',
    "stream_options.include_usage: expected once, got twice",
  ],
  ['{"model":"a","Model":"b"}', "Model: expected model, in these letters"],
  ['{"MAX_TO\u212aENS":1}', "MAX_TO\u212aENS: expected max_tokens, in these letters"],
  ['{"\u017ftream":true}', "\u017ftream: expected stream, in these letters"],
  // A lenient parser drops a backslash or a byte that it does not know, and one in C ends a text at its NUL.
  ['{"model":"a","m\\odel":"b"}', 'body: expected JSON; the name "m\\\\odel" is no text'],
  ['{"model":"a","mo\u0001del":"b"}', 'body: expected JSON; the name "mo\\u0001del" is no text'],
  ['{"model\\u0000":"b","model":"a"}', "model\0: expected model, in these letters"],
  [
    '{"generationConfig":{"maxOutputTokens\\u0000x":9}}',
    "generationConfig.maxOutputTokens\0x: expected generationConfig.maxOutputTokens, in these letters",
  ],
  ['{"model":"a\\u0000"}', "model: expected text of at most 256 bytes, without NUL"],
  ['{"options":{"Num_Predict":1}}', "options.Num_Predict: expected options.num_predict, in these letters"],
  ['{"options":{"num_predict":1},"options":{}}', "options: expected once, got twice"],
  ['{"model":5}', "model: expected a string"],
  ['{"model":["a"]}', "model: expected a string"],
  [`{"model":"${"m".repeat(257)}"}`, "model: expected text of at most 256 bytes, without NUL"],
  ["[]", "body: expected a JSON object"],
  ["", "body: expected JSON; it ends too early"],
  ["{]", 'body: expected JSON; "]" at byte 1 is not expected there'],
  [`{"a":${"[".repeat(300)}`, "body: expected JSON; it is nested deeper than 256 levels"],
])("%s is refused", (text, mistake) => {
  expect(read(text)).toEqual({ facts: undefined, mistake });
});

test("a base64 image counts as a thousand tokens, a text of the same length by its bytes", () => {
  const image = `data:image/png;base64,${"iVBORw0KGgo".repeat(10_000)}`;
  const withImage = { input: [{ content: [{ image_url: image }] }], images: [image] };
  expect(factsOf(withImage).promptTokens).toBe(2_000);
  expect(factsOf({ input: "some words and more ".repeat(10_000) }).promptTokens).toBe(50_000);
});

test.each([
  (text: string) => ({ prompt: text }),
  (text: string) => ({ input: [text] }),
  (text: string) => ({ prompt: [[text]] }),
  (text: string) => ({ messages: [{ content: text }] }),
  (text: string) => ({ messages: [{ content: [{ type: "text", text }] }] }),
  (text: string) => ({ tools: [{ function: { description: text } }] }),
  (text: string) => ({ tools: [{ function: { parameters: { properties: { data: { url: text } } } } }] }),
  (text: string) => ({ messages: [{ role: "assistant", reasoning_content: text }] }),
  (text: string) => ({ metadata: { data: text } }),
])("a text that looks like base64 is counted by its bytes (%#)", (bodyOf) => {
  expect(factsOf(bodyOf("a".repeat(400_000))).promptTokens).toBeGreaterThanOrEqual(100_000);
  expect(factsOf(bodyOf(`${"a".repeat(2_000)} ${"b c".repeat(100_000)}`)).promptTokens).toBeGreaterThan(75_000);
});

test.each([
  { messages: [{ content: [{ image_url: { url: "" } }, { input_audio: { data: "" } }, { file: { file_data: "" } }] }] },
  { messages: [{ content: [{ source: { data: "" } }, { image: { source: { bytes: "" } } }], images: [""] }] },
  { contents: [{ parts: [{ inlineData: { data: "" } }] }], images: ["", ""] },
])("images, sounds and files stand where vendors take them: %j", (call) => {
  const media = "iVBORw0KGgo".repeat(10_000);
  const text = JSON.stringify(call).replaceAll('""', JSON.stringify(media));
  expect(read(text).facts?.promptTokens).toBe(3_000);
});

test("a prompt of token ids counts each of them; other numbers are no prompt", () => {
  expect(factsOf({ prompt: [1, 2, 3, 4] }).promptTokens).toBe(4);
  expect(
    factsOf({
      input: [
        [5, 6],
        [7, 8, 9],
      ],
    }).promptTokens,
  ).toBe(5);
  expect(factsOf({ max_tokens: 5, logit_bias: { 50256: -100 }, stop: [1, 2] }).promptTokens).toBe(0);
});

const big = { ["n".repeat(40_000)]: Array.from({ length: 1_000 }, () => 1234) };

test.each([
  { messages: [{ content: [{ type: "tool_use", input: big }] }] },
  { messages: [{ content: [{ toolUse: { input: big } }] }] },
  { messages: [{ content: [{ toolResult: { content: [{ json: big }] } }] }] },
  { messages: [{ tool_calls: [{ function: { name: "f", arguments: big } }] }] },
  { contents: [{ parts: [{ functionCall: { args: big } }] }] },
  { contents: [{ parts: [{ functionResponse: { response: big } }] }] },
  { documents: [{ data: big }] },
])("names and numbers that a tool was called with, or answered, are part of the prompt (%#)", (call) => {
  expect(factsOf(call).promptTokens).toBeGreaterThanOrEqual(11_000);
});

test("member names of messages cost nothing, even after those of a tool", () => {
  const use = { type: "tool_use", input: { ab: 12 } };
  const text = { type: "text", text: "1234" };
  const tokens = tokensIn("tool_use".length + 2 + 2 + 2 * ("text".length + 4));
  expect(factsOf({ messages: [{ content: [use, text, text] }] }).promptTokens).toBe(tokens);
});

test.each([
  [{ previous_response_id: "resp_1" }, 10_000],
  [{ conversation: "conv_1" }, 10_000],
  [{ conversation: { id: "conv_1" } }, 10_000],
  [{ prompt: { id: "pmpt_1" } }, 10_000],
  [{ cachedContent: "cachedContents/1" }, 10_000],
  [{ previous_response_id: null, conversation: "" }, 0],
  [{ input: [{ content: [{ type: "input_file", file_id: "file-1" }] }] }, 1_000],
  [{ input: [{ content: [{ type: "input_file", file_url: "https://x.example/a.pdf" }] }] }, 1_000],
  [
    { input: [{ content: [{ image_url: "https://x.example/a.png" }, { image_url: "https://x.example/b.png" }] }] },
    2_000,
  ],
  [{ messages: [{ content: [{ image_url: { url: "https://x.example/a.png" } }] }] }, 1_000],
  [{ messages: [{ content: [{ source: { type: "url", url: "https://x.example/a.png" } }] }] }, 1_000],
  [{ messages: [{ content: [{ source: { type: "file", file_id: "file_1" } }] }] }, 1_000],
  [{ contents: [{ parts: [{ fileData: { fileUri: "gs://b/a.mp4" } }] }] }, 1_000],
  [{ messages: [{ content: [{ document: { source: { s3Location: { uri: "s3://b/a.pdf" } } } }] }] }, 1_000],
  [{ input: [{ content: [{ annotations: [{ file_id: "f" }] }, { url: "https://x.example" }] }] }, 0],
  [{ messages: [{ content: [{ image_url: { url: "data:image/png;base64,AAAA" } }] }] }, 0],
])("%j names a part of the prompt that the vendor has, or fetches: %i tokens", (call, tokens) => {
  // Plus a few for the names and types themselves.
  const { promptTokens } = factsOf(call);
  expect([promptTokens >= tokens, promptTokens - tokens < 30]).toEqual([true, true]);
});

test("Ollama's context is a prompt of token ids", () => {
  expect(factsOf({ context: [1, 2, 3] }).promptTokens).toBe(3);
});

test.each([
  [true, true],
  [1, true],
  [false, false],
  [null, false],
])("background: %j asks for work behind the answer: %s", (background, isBackground) => {
  expect(factsOf({ background }).isBackground).toBe(isBackground);
  expect(factsOf({}).isBackground).toBe(false);
});

test("names and numbers in a tool's schema are part of the prompt", () => {
  const properties = { ["n".repeat(40_000)]: { enum: Array.from({ length: 1_000 }, () => 1234) } };
  expect(factsOf({ tools: [{ function: { parameters: { properties } } }] }).promptTokens).toBeGreaterThan(11_000);
  expect(factsOf({ metadata: properties }).promptTokens).toBe(0);
});

test.each([
  ["openai", "/v1/chat/completions", { max_tokens: 900, max_completion_tokens: 1000, max_output_tokens: 2000 }, 1000],
  ["openai", "/v1/chat/completions?a=/responses", { max_output_tokens: 1, options: { num_predict: 1 } }, undefined],
  ["openai", "/v1/responses", { max_tokens: 1, generationConfig: { maxOutputTokens: 1 } }, undefined],
  ["openai", "/v1/chat/completions/", { max_output_tokens: 1 }, undefined],
  ["openai", "/v1/Chat/Completions", { max_output_tokens: 1 }, undefined],
  ["openai", "/v1/chat;a=b/completions;c", { max_output_tokens: 1 }, undefined],
  ["openai", "/v1/responses", { max_output_tokens: 70 }, 70],
  ["anthropic", "/v1/messages", { max_completion_tokens: 1, inferenceConfig: { maxTokens: 1 } }, undefined],
  ["anthropic", "/v1/messages", { max_tokens: 80 }, 80],
  ["openai", "/v1/completions", { max_completion_tokens: 1 }, undefined],
  ["openai", "/v1/completions", { max_tokens: 90, max_completion_tokens: 1 }, 90],
  ["openai", "/v1/chat/completions", { max_tokens: 1, n_predict: 5000 }, 5000],
  ["openai", "/v1/chat/completions", { max_tokens: 1, n_predict: -1 }, undefined],
  ["openai", "/v1/chat/completions", { max_tokens: 9, n_predict: 1 }, 9],
  ["openai", "/v1/chat/completions", { n_predict: 1 }, undefined],
  ["/", "/api/chat", { max_tokens: 1 }, undefined],
  ["/", "/api/generate?x", { max_tokens: 1, options: { num_predict: 40 } }, 40],
  ["/usageMetadata", "/v1beta/models/g:streamGenerateContent?alt=sse", { max_tokens: 1 }, undefined],
  ["/usageMetadata", "/v1beta/models/g%3AgenerateContent", { max_tokens: 1 }, undefined],
  ["/usageMetadata", "/v1beta/models/g:generateContent", { generationConfig: { maxOutputTokens: 30 } }, 30],
  ["/usage", "/model/m/converse-stream", { max_tokens: 1 }, undefined],
  ["/usage", "/elsewhere", { max_tokens: 50 }, 50],
  ["/usage", "/model/m/converse", { inferenceConfig: { maxTokens: 60 } }, 60],
])("a call to %s at %s with %j is bounded by %s: other names are another vendor's", (usage, target, body, bound) => {
  const reader = new CallReader(vendorOf(usage).boundsOf(target));
  reader.push(Buffer.from(JSON.stringify(body)));
  expect(reader.end()?.maxTokens).toBe(bound);
});

test.each([
  ["{}", true],
  ['{"stream":null}', true],
  ['{"stream":false}', false],
  ['{"stream":true}', true],
])("where a server streams by default, %s asks for a stream: %s", (body, isStream) => {
  const reader = new CallReader(vendorOf("/").boundsOf("/api/chat"), { isStream: true });
  reader.push(Buffer.from(body));
  expect(reader.end()?.isStream).toBe(isStream);
});

test.each([
  ['{"stream":true}', { stream: true, stream_options: { include_usage: true } }],
  ['{"stream":true,"stream_options":null}', { stream: true, stream_options: { include_usage: true } }],
  ['{"stream":true,"stream_options":{}}', { stream: true, stream_options: { include_usage: true } }],
  ['{"stream_options": { "a":1 }}', { stream_options: { a: 1, include_usage: true } }],
  ['{"stream_options":{"include_usage" : false}}', { stream_options: { include_usage: true } }],
  ['{"stream_options":{"include_usage":true}}', undefined],
  ['{"stream_options":{"include_usage":{}}}', undefined],
  ['{"stream_options":7}', undefined],
])("%s asks for usage as %j", (text, asked) => {
  expect(spliced(text)).toEqual(asked);
});

test("a call reads the same however its body is split", () => {
  const body = JSON.stringify({
    model: "claude-ü",
    stream: true,
    stream_options: { include_usage: false },
    messages: [{ content: 'a \\ " b' }],
    max_tokens: 12,
  });
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 40 }), (places) => {
      expect(read(body, places)).toEqual(read(body));
    }),
  );
});
