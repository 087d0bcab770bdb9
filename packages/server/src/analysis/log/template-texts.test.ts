import { expect, test } from "vitest";
import { compileTemplate } from "./template.js";
import { rolesOf } from "./template-roles.js";
import { TemplateTexts } from "./template-texts.js";

const template = compileTemplate('$time_iso8601 "$request" "$http_x_user" $tenant');
const roles = rolesOf(template, { wanted: { fields: ["tenant"] }, timeIsEnd: false });

test("quoted values end at an unescaped quote, and are unescaped", () => {
  const texts = new TemplateTexts(template, roles, false);
  expect(texts.split('2026-11-16T07:00:00Z "GET /a\\x22b HTTP/1.1" "bo\\"b" acme')).toBe(true);
  expect(texts.requestLine(1)).toMatchObject({ method: "GET", target: '/a"b' });
  expect([texts.value(2), texts.value(3), texts.value(-1)]).toEqual(['bo"b', "acme", undefined]);
  expect(texts.split('2026-11-16T07:00:00Z "GET /a HTTP/1.1" "bob\\" acme')).toBe(false);
});

test("only an open template may be followed by more text", () => {
  const line = '2026-11-16T07:00:00Z "-" "-" acme more';
  const closed = new TemplateTexts(template, roles, false);
  const open = new TemplateTexts(template, roles, true);
  expect([closed.split(line), closed.value(3)]).toEqual([true, "acme more"]);
  expect([open.split(line), open.value(3), open.value(2)]).toEqual([true, "acme", undefined]);
});
