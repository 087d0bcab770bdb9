import { expect, test } from "vitest";
import { LONGEST_DURATION_MS } from "../rules/duration.js";
import type { LeasePlaces } from "../store/store.js";
import { MOST_PLACES, parseLeaseId, spellLeaseId } from "./lease-id.js";

const place: LeasePlaces = { key: "{user=ann}:slots:c", entryId: "abc", places: 2, ttlMs: 30_000 };

const forged = (held: unknown): string => `abc.s.${Buffer.from(JSON.stringify(held)).toString("base64url")}`;

test.each([true, false])("an id can be read back (local: %s)", (local) => {
  const places = [place, { ...place, key: "{x}:y:C" }, { ...place, key: "{x}:z:c", entryId: "other" }];
  expect(parseLeaseId(spellLeaseId({ places }, local))).toEqual({ lease: { places }, local });
});

test.each([
  ["no text", 7],
  ["too few parts", "abc.s"],
  ["too many parts", `${forged([["{a}:b:c", 1, 1]])}.x`],
  ["an unknown place", forged([["{a}:b:c", 1, 1]]).replace(".s.", ".x.")],
  ["no JSON", "abc.s.%%%"],
  ["another spelling of an id", `${forged([["{a}:b:c", 1, 1]])}==`],
  ["letters that are passed over", `${forged([["{a}:b:c", 1, 1]])}\u0000\u202e`],
  ["an empty list", forged([])],
  ["no list of lists", forged(["{a}:b:c"])],
  ["more places than a decision has", forged(Array.from({ length: 65 }, () => ["{a}:b:c", 1, 1]))],
  ["a counter that is none of a concurrency rule", forged([["{a}:b:z", 1, 1]])],
  ["a key with a second tag", forged([["{a}:{b}:c", 1, 1]])],
  ["a record's key", forged([["{a}!2=id", 1, 1]])],
  ["no places", forged([["{a}:b:c", 0, 1]])],
  ["too many places", forged([["{a}:b:c", MOST_PLACES + 1, 1]])],
  ["a term beyond all durations", forged([["{a}:b:c", 1, LONGEST_DURATION_MS + 1]])],
  ["an entry id with other characters", forged([["{a}:b:c", 1, 1, "a b"]])],
  ["a very long id", `abc.s.${"x".repeat(9_000)}`],
])("%s is refused as a lease id", (_, id) => {
  expect(() => parseLeaseId(id)).toThrow("lease: expected the id of a lease, as a decision gave it");
});
