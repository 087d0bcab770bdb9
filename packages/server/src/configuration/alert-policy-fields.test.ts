import { expect, test } from "vitest";
import { mistakesOf } from "./alert-policy-fields.js";

test.each(["valueOf", "constructor", "__proto__", "more"])("a field named %s is unknown, like any other", (name) => {
  expect(mistakesOf(JSON.parse(`{"routes":[{"receivers":[],"${name}":1}]}`))).toEqual([
    { path: `routes[0].${name}`, message: "unknown field; known are receivers, match, repeat" },
  ]);
});
