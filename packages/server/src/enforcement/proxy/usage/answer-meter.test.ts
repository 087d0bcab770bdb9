import fc from "fast-check";
import { expect, test } from "vitest";
import { AnswerMeter } from "./answer-meter.js";
import { vendorOf } from "./vendors.js";

async function through(pieces: readonly Buffer[], hidesUsage = true): Promise<string> {
  const meter = new AnswerMeter({ vendor: vendorOf("openai"), kind: "events", hidesUsage });
  const out: Buffer[] = [];
  meter.on("data", (chunk: Buffer) => out.push(chunk));
  for (const piece of pieces) meter.write(piece);
  await new Promise((resolve) => meter.end().once("end", resolve));
  return Buffer.concat(out).toString();
}

const delta = 'data: {"choices":[{"delta":{"content":"hi"}}],"usage":null}';
const usage = 'data: {"choices":[],"usage":{"completion_tokens":3}}';
const done = "data: [DONE]";

test.each(["\n", "\r\n", "\r"])("the usage event is removed, with any line ending: %j", async (end) => {
  const stream = [delta, "", usage, "", done, "", ""].join(end);
  expect(await through([Buffer.from(stream)])).toBe([delta, "", done, "", ""].join(end));
  expect(await through([Buffer.from(stream)], false)).toBe(stream);
});

test("the client receives the same however the stream is split", async () => {
  const line = fc.constantFrom(delta, usage, done, ": comment", "event: x");
  const stream = fc.array(fc.tuple(line, fc.constantFrom("\n\n", "\r\n\r\n", "\r\r")), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(stream, fc.array(fc.nat(), { maxLength: 12 }), async (events, places) => {
      const whole = Buffer.from(events.flat().join(""));
      const ends = [...places.map((place) => place % (whole.length + 1)), whole.length].sort((a, b) => a - b);
      const pieces = ends.map((end, i) => whole.subarray(ends[i - 1] ?? 0, end));
      const kept = events
        .filter(([text]) => text !== usage)
        .flat()
        .join("");
      expect(await through(pieces)).toBe(kept);
    }),
  );
});

test("an empty chunk between the CR and the LF that end an event changes nothing", async () => {
  const pieces = [`${delta}\r\n\r\n`, `${usage}\r\n\r`, "", `\n${done}\r\n\r`, "", "\n"].map((piece) =>
    Buffer.from(piece),
  );
  expect(await through(pieces)).toBe(`${delta}\r\n\r\n${done}\r\n\r\n`);
});

test("an event that never ends is held up to 64 KiB, then streams through", () => {
  const meter = new AnswerMeter({ vendor: vendorOf("openai"), kind: "events", hidesUsage: true });
  let passed = 0;
  meter.on("data", (chunk: Buffer) => {
    passed += chunk.length;
  });
  meter.write(Buffer.from('data: {"x":"'));
  const piece = Buffer.alloc(10_000, "x");
  let most = 0;
  for (let i = 0; i < 500; i++) {
    meter.write(piece);
    most = Math.max(most, meter.heldBytes);
  }
  expect(most).toBeLessThanOrEqual(64 * 1024);
  expect(passed + meter.heldBytes + meter.readableLength + meter.writableLength).toBe(5_000_012);
});

test("a truncated event still reaches the client", async () => {
  expect(await through([Buffer.from(`${delta}\n\n${usage}\n`)])).toBe(`${delta}\n\n${usage}\n`);
});
