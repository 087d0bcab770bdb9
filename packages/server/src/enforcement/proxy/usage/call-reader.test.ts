import fc from "fast-check";
import { expect, test } from "vitest";
import { type CallFacts, CallReader } from "./call-reader.js";
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

/** The body with its splice done, parsed. */
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

test("a nested bound, or one in a text, is none", () => {
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
  ['{"options":{"Num_Predict":1}}', "options.Num_Predict: expected options.num_predict, in these letters"],
  ['{"options":{"num_predict":1},"options":{}}', "options: expected once, got twice"],
  ['{"model":5}', "model: expected a string"],
  ['{"model":["a"]}', "model: expected a string"],
  [`{"model":"${"m".repeat(257)}"}`, "model: expected text of at most 256 bytes"],
  ["[]", "body: expected a JSON object"],
  ["", "body: expected JSON; it ends too early"],
  ["{]", 'body: expected JSON; "]" at byte 1 is not expected there'],
  [`{"a":${"[".repeat(300)}`, "body: expected JSON; it is nested deeper than 256 levels"],
])("%s is refused", (text, mistake) => {
  expect(read(text)).toEqual({ facts: undefined, mistake });
});

test("an image in base64 counts as a thousand tokens, a text of the same length by its bytes", () => {
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

test("a prompt of token numbers counts each of them; other numbers are no prompt", () => {
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

test("names and numbers in the description of a tool are part of the prompt", () => {
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

test("a call is the same however its body is cut", () => {
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
