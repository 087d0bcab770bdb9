import { expect, test } from "vitest";
import { ChangedDecisions } from "./changed-decisions.js";

test("requests and keys that are newly refused or admitted are counted apart, the busiest key first", () => {
  const changes = new ChangedDecisions();
  for (const key of ["r: ip=1", "r: ip=2", "r: ip=2"]) changes.newlyRefused(key);
  changes.newlyAdmitted("r: ip=3");
  changes.refused += 5;
  expect(changes.read()).toEqual({
    refused: 5,
    newlyRefused: 3,
    newlyAdmitted: 1,
    keysNewlyRefused: 2,
    keysNewlyAdmitted: 1,
    keysExact: true,
    newlyRefusedKeys: [
      { key: "r: ip=2", refused: 2 },
      { key: "r: ip=1", refused: 1 },
    ],
    newlyAdmittedKeys: [{ key: "r: ip=3", refused: 1 }],
  });
});

test("beyond twenty thousand keys the key counts are lower bounds, and marked as such", () => {
  const changes = new ChangedDecisions();
  for (let i = 0; i < 30_000; i++) changes.newlyRefused(`r: ip=${i}`);
  const { newlyRefused, keysNewlyRefused, keysExact } = changes.read();
  expect([newlyRefused, keysExact]).toEqual([30_000, false]);
  expect(keysNewlyRefused).toBeLessThan(30_000);
});
