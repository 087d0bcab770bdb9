import { expect, test } from "vitest";
import { compileTemplate } from "./template.js";
import { TemplateBytes } from "./template-bytes.js";
import { rolesOf } from "./template-roles.js";

const template = compileTemplate('$remote_addr - $skipped [$time_iso8601] "$request" "$http_user_agent"');
const roles = rolesOf(template, { wanted: { headers: new Set() }, timeIsEnd: false });
const pieces = new TemplateBytes(template, roles, { isOpen: true, memos: undefined });
const split = (line: string): boolean => {
  const bytes = Buffer.from(`${line}\nnext`);
  return pieces.split(bytes, 0, bytes.length - 5);
};
const line = '10.0.0.1:80 - a - [b [2026-11-16T07:00:00Z] "GET /a HTTP/1.1" "agent"';

test("repeated values are the same string", () => {
  expect(split(line.replace("- [b ", ""))).toBe(true);
  expect(pieces.timeMs()).toBe(Date.UTC(2026, 10, 16, 7));
  expect(pieces.peer(roles.peerAt)).toBe("10.0.0.1");
  const first = pieces.requestLine(roles.requestAt);
  expect(first).toMatchObject({ method: "GET", target: "/a" });
  expect(pieces.requestLine(roles.requestAt)).toBe(first);
});

test.each([
  ["a backslash in a quoted value that nobody wants", line.replace("agent", "a\\x22")],
  ["a byte beyond ASCII in a wanted value", line.replace("/a", "/é")],
  ["a quote that never ends", line.slice(0, -1)],
  ["another line", "hello"],
  ["an empty line", ""],
])("%s is left to the reader of texts", (_, given) => {
  expect(split(given)).toBe(false);
});

test("a non-ASCII byte does not matter in an unwanted value", () => {
  expect(split(line.replace("- [b ", "").replace("agent", "café"))).toBe(true);
});
