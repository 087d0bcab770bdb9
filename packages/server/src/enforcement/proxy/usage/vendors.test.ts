import { expect, test } from "vitest";
import { vendorOf } from "./vendors.js";

test("a vendor's name is not a JSON pointer, and a pointer may lead to a number or to an object of counts", () => {
  expect(vendorOf("openai").usage.get("usage/completion_tokens")).toBe("completion");
  expect(vendorOf("anthropic").usage.get("message/usage/input_tokens")).toBe("input");
  const other = vendorOf("/billed/tokens");
  expect([other.name, other.usage.get("billed/tokens"), other.usage.get("billed/tokens/output_tokens")]).toEqual([
    "other",
    "completion",
    "completion",
  ]);
});

test("other vendors' text is found by the last step of its path", () => {
  const { isText } = vendorOf("/");
  expect([isText("candidates/*/content/parts/*/text"), isText("response"), isText("context")]).toEqual([
    true,
    true,
    false,
  ]);
});
