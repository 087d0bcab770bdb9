import { expect, test } from "vitest";
import { UnitLedger } from "./unit-ledger.js";

test("units in hand cover uses, up to their number", () => {
  const ledger = new UnitLedger();
  ledger.assign(10, 10_000);
  expect(ledger.report(4, 5_000)).toEqual({ used: 4, uncovered: 0 });
  expect(ledger.inHand).toBe(6);
  expect(ledger.report(9, 6_000)).toEqual({ used: 6, uncovered: 3 });
  expect(ledger.inHand).toBe(0);
});

test("a replaced assignment stays in hand until its end, although a replacement was sent", () => {
  const ledger = new UnitLedger();
  ledger.assign(10, 10_000);
  ledger.assign(4, 15_000);
  expect(ledger.inHand).toBe(14);
  expect(ledger.report(3, 8_000)).toEqual({ used: 3, uncovered: 0 });
  // Once the first assignment has ended, at most four of the eleven can be in hand.
  expect(ledger.inHand).toBe(11);
  ledger.report(0, 11_001);
  expect(ledger.inHand).toBe(4);
});

test("an expired assignment stays in hand until a report sent after its end: it may have been used before", () => {
  const ledger = new UnitLedger();
  ledger.assign(10, 10_000);
  expect(ledger.inHand).toBe(10);
  expect(ledger.report(2, 10_500)).toEqual({ used: 2, uncovered: 0 });
  expect(ledger.inHand).toBe(8);
  ledger.report(0, 11_001);
  expect(ledger.inHand).toBe(0);
});

test("an extended assignment lives on", () => {
  const ledger = new UnitLedger();
  ledger.assign(10, 10_000);
  ledger.extend(20_000);
  ledger.report(0, 15_000);
  expect(ledger.inHand).toBe(10);
});

test("units that the store ended were charged then, so their later uses are not charged again", () => {
  const ledger = new UnitLedger();
  ledger.assign(10, 10_000);
  ledger.end();
  expect(ledger.inHand).toBe(0);
  ledger.assign(5, 20_000);
  expect(ledger.report(12, 12_000)).toEqual({ used: 2, uncovered: 0 });
  expect(ledger.report(5, 13_000)).toEqual({ used: 3, uncovered: 2 });
});

test("many assignments are merged into few without losing units", () => {
  const ledger = new UnitLedger();
  for (let i = 1; i <= 1_000; i++) ledger.assign(1, i);
  ledger.report(0, 1_500);
  // Sixteen are kept; merged ones end with the latest of them.
  expect(ledger.inHand).toBe(1_000);
  ledger.report(0, 3_000);
  expect(ledger.inHand).toBe(0);
});
