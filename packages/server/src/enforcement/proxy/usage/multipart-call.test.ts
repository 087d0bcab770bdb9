import { expect, test } from "vitest";
import type { CallFacts } from "./call-reader.js";
import { MultipartCall } from "./multipart-call.js";

const TYPE = "multipart/form-data; boundary=b";

function read(
  body: string,
  { type = TYPE, size = Number.POSITIVE_INFINITY } = {},
): { facts: CallFacts | undefined; mistake: string | undefined } {
  const call = new MultipartCall(type);
  const bytes = Buffer.from(body);
  for (let i = 0; i < bytes.length; i += size) call.push(bytes.subarray(i, i + size));
  return { facts: call.end(), mistake: call.mistake };
}

const part = (head: string, content: string): string => `--b\r\nContent-Disposition: ${head}\r\n\r\n${content}\r\n`;
const field = (name: string, value: string): string => part(`form-data; name="${name}"`, value);
const file = part(
  'form-data; name="file"; filename="a \\"b\\".mp3"',
  "\r\n--c is no end, nor\r\n-- \u0000\r\n\r\n".repeat(50),
);
const form = (...parts: string[]): string => `${parts.join("")}--b--\r\n`;

test("a call's model and stream are read beside its file, in any order, however the body is split", () => {
  const whole = form(field("prompt", "12345678"), file, field("stream", "true"), field("model", "GPT-x"));
  for (const size of [1, 2, 3, 7, 64, whole.length]) {
    expect(read(whole, { size }).facts).toEqual({
      model: "GPT-x",
      isStream: true,
      maxTokens: undefined,
      // 8 + 4 + 5 bytes of text, and the file.
      promptTokens: 5 + 1_000,
      isBackground: false,
      askForUsage: undefined,
    });
  }
});

test("the forms of browsers, Node, curl, Python and .NET are read", async () => {
  const made = new FormData();
  made.set("model", "m");
  made.set("file", new Blob(["x".repeat(3_000)]), 'a "name" \u00e9.mp3');
  const sent = new Response(made);
  const type = sent.headers.get("content-type")!;
  expect(read(Buffer.from(await sent.arrayBuffer()).toString(), { type }).facts).toMatchObject({ model: "m" });
  expect(read(`\r\n${form(field("model", "m"))}`, { size: 1 }).facts).toMatchObject({ model: "m" });
  expect(read(form(field("model", "m")).slice(0, -2)).facts).toMatchObject({ model: "m" });
  const quoted = { type: 'multipart/form-data; charset="utf-8"; boundary="b"' };
  const bare =
    part("form-data; name=model", "m") + part("form-data; name=file; filename=a.mp3; filename*=utf-8''a.mp3", "x");
  expect(read(form(bare), quoted).facts).toMatchObject({ model: "m", promptTokens: 1_001 });
  const typed = part('form-data; name="model"\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Length: 1', "m");
  expect(read(form(typed)).facts?.model).toBe("m");
});

test.each([
  ["", false],
  ["false", false],
  ["FALSE", false],
  ["0", false],
  ["true", true],
  ["1", true],
  ["on", true],
])("stream as the text %j counts as %s", (value, isStream) => {
  expect(read(form(field("stream", value))).facts).toMatchObject({ model: undefined, isStream });
});

const boundary = "body: expected its boundary on a line of its own";
const headers = "body: expected each header of a part once, on a line of its own";
const open = "body: expected a form that ends with its boundary";
const disposition = 'body: expected parts with content-disposition: form-data; name="…"';

test.each([
  [form(field("model", "a"), field("model", "b")), "model: expected once, got twice"],
  [form(field("Model", "a")), "Model: expected model, in these letters"],
  [form(field(" model", "a")), " model: expected model, in these letters"],
  [form(part('form-data; name="model"; filename="x"', "a")), "model: expected text, got a file"],
  [form(part('form-data; name="model"; name="file"', "a")), disposition],
  [form(part('form-data; name="mo\\del"', "a")), disposition],
  [form(part('form-data; name="mod%65l"', "a")), disposition],
  [form(part("form-data; name*=utf-8''model", "a")), disposition],
  [form(part('form-data; name="x"\r\nContent-Disposition: form-data; name="model"', "a")), headers],
  [form(part('form-data;\r\n name="model"', "a")), headers],
  [form(part('form-data; name="x"\nContent-Type: a', "a")), headers],
  [
    form(part('form-data; name="model"\r\nContent-Transfer-Encoding: base64', "YQ==")),
    "model: expected text without a transfer encoding",
  ],
  [
    form(part('form-data; name="model"\r\nContent-Type: text/plain; charset=utf-7', "+AGQ-ear")),
    "model: expected text in UTF-8",
  ],
  [form(field("_charset_", "utf-7"), field("model", "+AGQ-ear")), "_charset_: expected no such field; texts are UTF-8"],
  [
    form(part('form-data; name="x"; filename="x"\r\nContent-Length: 90', "x"), field("model", "a")),
    "body: expected parts as long as their content-length says",
  ],
  [`\r\n\r\n${form(field("model", "a"))}`, boundary],
  [form(field("model", "m".repeat(257))), "model: expected text of at most 256 bytes, in ASCII"],
  [form(field("model", "\u00e4")), "model: expected text of at most 256 bytes, in ASCII"],
  [form(part(`form-data; name="${"x".repeat(9_000)}"`, "")), "body: expected at most 8192 bytes of a part's headers"],
  [`preamble\r\n${form(field("model", "a"))}`, boundary],
  ['{"model":"dear"}', boundary],
  [`${field("x", "1")}--b-\r\n`, boundary],
  [`${field("x", "1")}--b \r\n${field("model", "a")}--b--`, boundary],
  [`${form(field("x", "1"))}${form(field("model", "a"))}`, "body: expected nothing behind the last boundary"],
  [
    '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n--b--\r\n',
    "body: expected a line end between the headers of a part and its boundary",
  ],
  [field("model", "a"), open],
  ["", open],
  [form(...Array<string>(1_000).fill(field("x", ""))), "body: expected at most 1000 parts"],
])("%j is refused: parsers differ in what they read there", (body, mistake) => {
  for (const size of [1, Number.POSITIVE_INFINITY]) expect(read(body, { size })).toEqual({ facts: undefined, mistake });
});

test.each([
  "multipart/form-data",
  "multipart/mixed; boundary=b",
  "multipart/form-data; boundary=b; boundary=c",
  "multipart/form-data; boundary*=utf-8''b",
  `multipart/form-data; boundary=${"b".repeat(71)}`,
])("the content type %s is refused", (type) => {
  expect(read(form(field("model", "a")), { type }).mistake).toMatch(/^content-type: expected multipart\/form-data/);
});
