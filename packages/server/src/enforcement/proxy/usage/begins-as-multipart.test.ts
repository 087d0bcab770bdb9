import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { beginsAsMultipart } from "./begins-as-multipart.js";

/** The result for a body that arrives in these pieces, and the body as read afterwards. */
async function asked(pieces: readonly string[]): Promise<[boolean | undefined, string]> {
  const body = new PassThrough();
  const found = beginsAsMultipart(body);
  for (const piece of pieces) {
    body.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  body.end();
  return [await found, body.readableEnded ? "" : await text(body)];
}

test.each([
  ["--b\r\ncontent\r\n--b--\r\n", true],
  ["\r\n--b\r\ncontent", true],
  ['{"model":"dear"}', false],
  [' \r\n{"model":"dear"}', false],
  ['\r\n{"model":"dear"}', false],
  ["-{--", false],
])("%j: %s, and every byte is still there, whole or byte by byte", async (body, found) => {
  expect(await asked([body])).toEqual([found, body]);
  expect(await asked([...body])).toEqual([found, body]);
});

test("a body of three bytes is not multipart", async () => {
  expect((await asked(["--b"]))[0]).toBe(false);
});

test("there is no result for a client that disconnects", async () => {
  const body = new PassThrough();
  body.on("error", () => undefined);
  const found = beginsAsMultipart(body);
  body.write("--");
  await new Promise((resolve) => setImmediate(resolve));
  body.destroy(new Error("aborted"));
  expect(await found).toBe(undefined);
});
