import { expect, test } from "vitest";
import { csvOf, fileName } from "./chart-files.js";

test("a chart's values are rows with UTC times; unknown values are empty, and no label is a formula", () => {
  const csv = csvOf(
    [0, 1_000],
    [
      { label: "Allowed", values: [1.5, null] },
      { label: '=a,"b"', values: [0, 2] },
    ],
  );
  expect(csv).toBe('time,Allowed,"\'=a,""b"""\r\n1970-01-01T00:00:00.000Z,1.5,0\r\n1970-01-01T00:00:01.000Z,,2\r\n');
});

test.each(["=a", "+a", "-a", "@a", "\t=a", "\r=a"])("a label such as %j gets a leading apostrophe", (label) => {
  expect(csvOf([], [{ label, values: [] }])).toMatch(/^time,"?'/);
});

test("a file is named after its chart", () => {
  expect(fileName("Decisions a second", "png")).toBe("sluice-decisions-a-second.png");
});
