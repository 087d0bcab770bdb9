import { expect, test } from "vitest";
import { w3cFormat } from "./w3c-format.js";

test("the last #Fields line defines the columns; IIS uses milliseconds and spaces", () => {
  const read = w3cFormat.reader({ fields: ["cs-username"] }).text;
  expect(read("2026-11-16 07:00:00 /early")).toBeUndefined();
  expect(read("#Fields: date time c-ip cs-username cs-method cs-uri-stem cs-uri-query cs(User-Agent) time-taken")).toBe(
    "blank",
  );
  expect(read("2026-11-16 07:00:01 192.0.2.1 bob POST /a x=1 Mozilla/5.0+(X) 250")).toMatchObject({
    atMs: Date.UTC(2026, 10, 16, 7, 0, 1) - 250,
    durationMs: 250,
    method: "POST",
    target: "/a?x=1",
    peer: "192.0.2.1",
    headers: { "user-agent": "Mozilla/5.0+(X)" },
    fields: ["bob"],
  });
  expect(read("#Fields: date time cs-uri-stem")).toBe("blank");
  expect(read("2026-11-16 07:00:02 /b")).toMatchObject({ target: "/b", peer: undefined });
  expect(read("2026-11-16 25:61:02 /b")).toBeUndefined();
});
