import { expect, test } from "vitest";
import type { Reserved } from "../store/reserved.js";
import { parseReservationId, spellReservationId } from "./reservation-id.js";

const reserved: Reserved = {
  ttlMs: 60_000,
  counters: [
    {
      entryId: "abc",
      rule: "tokens",
      mode: "enforce",
      key: "{org=a}:tokens:b",
      policy: { stored: "token-bucket", limit: 10, capacity: 10, amount: 1, scaleMs: 6 },
      cost: "t",
      finishes: true,
      keyClass: "",
    },
    {
      entryId: "def",
      rule: "daily",
      mode: "shadow",
      key: "{org=a}:daily:f",
      policy: { stored: "fixed-window", limit: 10, windowMs: 1, calendar: { unit: "day", timezone: "Europe/Paris" } },
      cost: "bytes",
      finishes: false,
      keyClass: "x",
    },
  ],
};

test("an id can be read back", () => {
  for (const local of [false, true]) {
    expect(parseReservationId(spellReservationId(reserved, local))).toEqual({ reserved, local });
  }
});

const spelled = (listed: unknown, ttlMs: unknown = 1_000): string =>
  `abc.s.${Buffer.from(JSON.stringify([ttlMs, listed])).toString("base64url")}`;
const bucket = { stored: "token-bucket", limit: 1, capacity: 1, amount: 1, scaleMs: 1 };
const counter = ["r", 0, "{a}:r:b", bucket, "t", 1, ""];

const inZones = (count: number): unknown[] =>
  Array.from({ length: count }, (_, i) => {
    const calendar = { unit: "day", timezone: `Etc/GMT+${i}` };
    return ["r", 0, "{a}:r:f", { stored: "fixed-window", limit: 1, windowMs: 1, calendar }, "t", 1, ""];
  });

test("all counters of all ids share one object per calendar, whose windows are computed once", () => {
  const ids = [spelled([...inZones(8), ...inZones(8)]), spelled(inZones(3))];
  const calendars = ids.flatMap((id) =>
    parseReservationId(id).reserved.counters.map(({ policy }) => (policy as { calendar?: object }).calendar),
  );
  expect(new Set(calendars).size).toBe(8);
});

test("the unmodified text is a valid id, and each case changes one thing", () => {
  expect(() => parseReservationId(spelled([counter]))).not.toThrow();
});

test.each([
  ["nothing", undefined],
  ["another spelling of an id", `${spelled([counter])}==`],
  ["letters that are passed over", `${spelled([counter])}\u0000\u202e`],
  ["a number", 7],
  ["an empty text", ""],
  ["a lease's id", "abc.s.W1tdXQ"],
  ["no JSON", "abc.s.AAAA"],
  ["a fourth part", `${spelled([counter])}.x`],
  ["an entry id with a colon", spelled([counter]).replace("abc", "a:c")],
  ["a text of a megabyte", "a".repeat(2 ** 20)],
  ["no counters", spelled([])],
  ["too many counters", spelled(Array.from({ length: 129 }, () => counter))],
  ["a term of two days", spelled([counter], 172_800_000)],
  ["a term that is no number", spelled([counter], "1")],
  ["the key of a lease", spelled([["r", 0, "{a}:r:c", bucket, "t", 1, ""]])],
  ["the key of a record", spelled([["r", 0, "{a}!3=x", bucket, "t", 1, ""]])],
  ["an unknown mode", spelled([["r", 9, "{a}:r:b", bucket, "t", 1, ""]])],
  ["a policy without numbers", spelled([["r", 0, "{a}:r:b", { stored: "token-bucket" }, "t", 1, ""]])],
  ["a policy of a negative number", spelled([["r", 0, "{a}:r:b", { ...bucket, amount: -1 }, "t", 1, ""]])],
  ["a stored form of Object's", spelled([["r", 0, "{a}:r:b", { stored: "constructor" }, "t", 1, ""]])],
  [
    "a time zone that is none",
    spelled([
      [
        "r",
        0,
        "{a}:r:f",
        { stored: "fixed-window", limit: 1, windowMs: 1, calendar: { unit: "day", timezone: "x" } },
        "t",
        1,
        "",
      ],
    ]),
  ],
  ["calendars of nine time zones", spelled(inZones(9))],
])("%s is refused as an id", (_, id) => {
  expect(() => parseReservationId(id)).toThrow("reservation: expected the id of a reservation, as a decision gave it");
});
