import type { IncomingMessage } from "node:http";
import { PassThrough, pipeline, Writable } from "node:stream";
import { expect, test } from "vitest";
import { AnswerMeter } from "./answer-meter.js";
import { AnswerDrain } from "./drain-answer.js";
import { vendorOf } from "./vendors.js";

const FAR_MS = 60_000;
const word = 'data: {"choices":[{"delta":{"content":"12345678"}}]}\n\n';
const usage = 'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":77}}\n\n';

/** An answer in progress whose client has just disconnected. */
function abandoned(...sent: string[]) {
  const answer = new PassThrough();
  const meter = new AnswerMeter({ vendor: vendorOf("openai"), kind: "events", hidesUsage: false });
  pipeline([answer, meter], () => undefined);
  // A client that reads nothing.
  const client = new Writable({ write: () => undefined });
  meter.pipe(client);
  for (const text of sent) answer.write(text);
  return { answer: answer as unknown as IncomingMessage & PassThrough, meter };
}

const completion = ({ meter }: { meter: AnswerMeter }): number => meter.reader.usage({ isWhole: false }).completion;

test("usage that arrives after the client has left is read, and the answer counts as complete", async () => {
  const call = abandoned(word);
  const drained = new AnswerDrain({ longestMs: FAR_MS }).drain(call);
  call.answer.write(word.repeat(1_000));
  call.answer.end(usage);
  expect(await drained).toBe(true);
  expect(call.meter.reader.usage({ isWhole: true })).toMatchObject({ prompt: 5, completion: 77 });
});

test("an endless answer is cut after its time, or after 256 KiB", async () => {
  const slow = abandoned(word);
  expect(await new AnswerDrain({ longestMs: 1 }).drain(slow)).toBe(false);
  expect([slow.answer.destroyed, completion(slow)]).toEqual([true, 2]);
  const long = abandoned();
  const drained = new AnswerDrain({ longestMs: FAR_MS }).drain(long);
  while (!long.answer.destroyed) {
    long.answer.write(word.repeat(100));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await drained).toBe(false);
  const bytes = (completion(long) / 2) * word.length;
  expect([bytes > 256 * 1024, bytes < 1_000_000]).toEqual([true, true]);
});

test("an answer is not drained if it is over, has reported its usage, cannot report it, or draining is off", async () => {
  const drain = new AnswerDrain({ longestMs: FAR_MS });
  const over = abandoned(word);
  over.answer.destroy();
  const known = abandoned(usage);
  const silent = new AnswerMeter({ vendor: vendorOf("openai"), kind: "unread", hidesUsage: false });
  await new Promise((resolve) => setImmediate(resolve));
  expect([over, known, { ...known, meter: silent }].map((call) => drain.drain(call))).toEqual(Array(3).fill(undefined));
  expect(new AnswerDrain({ longestMs: 0 }).drain(abandoned(word))).toBeUndefined();
});

test("at most 256 answers are drained at once, and a finished one frees its place", async () => {
  const drain = new AnswerDrain({ longestMs: FAR_MS });
  const calls = Array.from({ length: 256 }, () => abandoned());
  const drained = calls.map((call) => drain.drain(call));
  expect(drain.drain(abandoned())).toBeUndefined();
  calls[7]!.answer.destroy();
  expect(await drained[7]).toBe(false);
  const next = abandoned();
  expect(drain.drain(next)).toBeDefined();
  for (const { answer } of [...calls, next]) answer.destroy();
});
