import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { serviceErrorKinds } from "./problem.js";

test("docs/service.md lists every code of the service with its status and remedy", () => {
  const page = readFileSync(fileURLToPath(new URL("../../../../../docs/service.md", import.meta.url)), "utf8");
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| (\d+) \| (.*) \|$/gm)].map(([, code, status, remedy]) => [
    code,
    Number(status),
    remedy,
  ]);
  const ofLibrary = ["invalid-request", "store-unavailable"];
  expect(rows.filter(([code]) => !ofLibrary.includes(code as string))).toEqual(
    Object.entries(serviceErrorKinds).map(([code, { status, remedy }]) => [code, status, remedy]),
  );
});
