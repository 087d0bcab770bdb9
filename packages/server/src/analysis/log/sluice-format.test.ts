import { expect, test } from "vitest";
import { detectFormat } from "./formats.js";
import { sluiceFormat } from "./sluice-format.js";

const header =
  '{"sluice":"recording","version":1,"instance":"i","segment":1,"at":1,"store":"memory","fresh":true,"hashed":[]}';
const decision = { at: 5, attributes: { user: "a" }, entry: "e", rules: 1, allowed: 1, checks: [] };

test("a recording is detected by its first line, however many rules follow", () => {
  const rules = Array.from({ length: 300 }, (_, i) => JSON.stringify({ rule: { id: `r${i}` } }));
  expect(detectFormat([header, ...rules])?.name).toBe("sluice");
});

test("decisions are requests with their attributes; peeks, repeated ids, rules and ends are not", () => {
  const read = sluiceFormat.reader({}).text;
  expect(read(JSON.stringify(decision))).toMatchObject({ atMs: 5, attributes: { user: "a" } });
  expect(read(JSON.stringify({ at: 6, refund: "e" }))).toMatchObject({ atMs: 6, recorded: { refund: "e" } });
  for (const line of [{ ...decision, peek: true }, { ...decision, repeated: true }, { end: true }, { dropped: 2 }]) {
    expect(read(JSON.stringify(line))).toBe("blank");
  }
  expect(read(header)).toBe("blank");
  expect(read("torn")).toBeUndefined();
});
