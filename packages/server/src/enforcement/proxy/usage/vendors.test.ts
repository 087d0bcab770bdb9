import { expect, test } from "vitest";
import { isCompletion, vendorOf } from "./vendors.js";

test("a vendor's name is no pointer, and a pointer may lead to a number or to an object of counts", () => {
  expect(vendorOf("openai").usage.get("usage/completion_tokens")).toBe("completion");
  expect(vendorOf("anthropic").usage.get("message/usage/input_tokens")).toBe("input");
  const other = vendorOf("/billed/tokens");
  expect([other.name, other.usage.get("billed/tokens"), other.usage.get("billed/tokens/output_tokens")]).toEqual([
    "other",
    "completion",
    "completion",
  ]);
});

test("text of other vendors is found by the last name of its path", () => {
  const { isText } = vendorOf("/");
  expect([isText("candidates/*/content/parts/*/text"), isText("response"), isText("context")]).toEqual([
    true,
    true,
    false,
  ]);
});

test("streams are asked for usage however the path of completions is spelled", () => {
  const spelled = ["", "/", "?a", ";a=b", ";a/?b"].map((end) => `/v1/chat/completions${end}`);
  expect([...spelled, "/V1/COMPLETIONS"].map(isCompletion)).toEqual(Array(6).fill(true));
  expect(["/v1/responses", "/v1/models?x=/completions", "/v1/completions/1"].map(isCompletion)).toEqual(
    Array(3).fill(false),
  );
});
