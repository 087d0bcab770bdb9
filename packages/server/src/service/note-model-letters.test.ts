import { createLimiter, type Rule } from "sluice";
import { expect, test } from "vitest";
import { noteModelLetters } from "./note-model-letters.js";

const rule: Rule = { id: "r", key: ["org", "model"], algorithm: "fixed-window", limit: 1, window: "1d" };

test("a rule that matches a model in capitals is logged once, even when it comes into force later", async () => {
  const limiter = createLimiter({ rules: [{ ...rule, match: { model: "Llama-*" } }] });
  const noted: unknown[] = [];
  noteModelLetters(limiter, { warn: (_text, fields) => void noted.push(fields?.rule) });
  expect(noted).toEqual(["r"]);
  limiter.setRules([
    { ...rule, match: { model: "Llama-*" } },
    { ...rule, id: "list", match: { model: ["gpt-5", "GPT-4o"] } },
    { ...rule, id: "override", overrides: [{ match: { model: "GPT-5" }, limit: 2 }] },
    {
      ...rule,
      id: "small",
      match: { model: "gpt-*", path: "/V1/*" },
      overrides: [{ match: { model: "gpt-5" }, limit: 2 }],
    },
  ]);
  expect(noted).toEqual(["r", "list", "override"]);
  await limiter.close();
});
