import { expect, test } from "vitest";
import { metricKey, overrideMetricKey } from "./metric-key.js";

const level = (value: string, given: { sharesThreshold?: boolean; valueToMetric?: boolean } = {}) => ({
  value,
  sharesThreshold: false,
  valueToMetric: false,
  ...given,
});
const entries = [
  { key: "path", value: "/v1" },
  { key: "user", value: "42" },
];
const spell = (met: readonly ReturnType<typeof level>[], detailed = false) =>
  metricKey({ domain: "d", entries, met, detailed });

test("levels are written as in the file; a bare key has no value", () => {
  expect(spell([level("/v1"), level("")])).toEqual({ text: "d.path_/v1.user", fromClient: false });
});

test("detailed_metric and value_to_metric use the client's value and mark it as such", () => {
  expect(spell([level("/v1"), level("", { valueToMetric: true })])).toEqual({
    text: "d.path_/v1.user_42",
    fromClient: true,
  });
  expect(spell([level("/*"), level("")], true)).toEqual({ text: "d.path_/v1.user_42", fromClient: true });
});

test("a value listed in the file does not count as the client's", () => {
  expect(spell([level("/v1"), level("42", { valueToMetric: true })]).fromClient).toBe(false);
});

test("a level with a shared counter is written as in the file, even if another option asks for the value", () => {
  const shared = level("/*", { sharesThreshold: true, valueToMetric: true });
  expect(spell([shared, level("")], true).text).toBe("d.path_/*.user_42");
});

test("detailed and empty: the reference writes the underscore of an empty value", () => {
  const empty = [{ key: "user", value: "" }];
  expect(metricKey({ domain: "d", entries: empty, met: [level("")], detailed: true }).text).toBe("d.user_");
  expect(
    metricKey({ domain: "d", entries: empty, met: [level("", { valueToMetric: true })], detailed: false }).text,
  ).toBe("d.user");
});

test("a limit carried by the request always counts as the client's", () => {
  expect(overrideMetricKey("d", entries)).toEqual({ text: "d.path_/v1.user_42", fromClient: true });
});
