import { expect, test } from "vitest";
import { columnsOf } from "./w3c-columns.js";

test("columns are found by name, in any case, between tabs or spaces", () => {
  const columns = columnsOf(
    " Date\ttime  c-ip cs(Host) cs(Cookie) sc-status",
    ["SC-Status", "absent"],
    new Set(["cookie"]),
  );
  expect(columns).toMatchObject({ date: 0, time: 1, peer: 2, hosts: [-1, 3, -1], path: -1, isCloudFront: false });
  expect(columns.headers).toEqual([{ name: "cookie", at: 4 }]);
  expect(columns.fields).toEqual([5, -1]);
});
