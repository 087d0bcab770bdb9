import type { ServerResponse } from "node:http";
import { setImmediate as nextRound } from "node:timers/promises";
import { expect, test } from "vitest";
import { SendTogether } from "./send-together.js";

const response = {} as ServerResponse;

function recording(): { sent: string[]; answers: SendTogether } {
  const sent: string[] = [];
  return { sent, answers: new SendTogether((_response, text) => sent.push(text)) };
}

test("a lone answer is sent at the end of its event-loop turn", async () => {
  const { sent, answers } = recording();
  answers.add(response, "a");
  expect(sent).toEqual([]);
  await nextRound();
  expect(sent).toEqual(["a"]);
});

test("many answers are sent in order, once each, and none waits for more than seven others", async () => {
  const { sent, answers } = recording();
  const texts = Array.from({ length: 20 }, (_, i) => String(i));
  for (let i = 0; i < texts.length; i++) {
    answers.add(response, texts[i]!);
    expect(i + 1 - sent.length).toBeLessThan(8);
  }
  await nextRound();
  expect(sent).toEqual(texts);
});
