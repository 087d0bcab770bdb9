import { expect, test } from "vitest";
import { wallLink, wallToken } from "./wall-token.js";

test("a link carries its token after the #, whatever characters it contains", () => {
  const token = "a+b/c=d&e #f";
  const { pathname, hash, search } = new URL(wallLink("https://limits.example", token));
  expect(wallToken({ pathname, hash })).toBe(token);
  expect(search).toBe("");
});

test("other pages, and links without a token, have none", () => {
  expect(wallToken({ pathname: "/rules", hash: "#token=abc" })).toBeUndefined();
  expect(wallToken({ pathname: "/wall", hash: "" })).toBeUndefined();
  expect(wallToken({ pathname: "/wall", hash: "#token=" })).toBeUndefined();
  expect(wallToken({ pathname: "/wall", hash: "#token=%20" })).toBeUndefined();
});
