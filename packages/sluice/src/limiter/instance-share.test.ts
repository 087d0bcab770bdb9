import { expect, test } from "vitest";
import type { Rule } from "../rules/rule.js";
import type { InstanceCount } from "../store/instance-count.js";
import type { Store } from "../store/store.js";
import { InstanceShare } from "./instance-share.js";

const rule = (onStoreFailure?: Rule["onStoreFailure"]): Rule =>
  ({
    id: "r",
    key: [],
    algorithm: "fixed-window",
    limit: 1,
    window: "1m",
    ...(onStoreFailure && { onStoreFailure }),
  }) as Rule;

function counting(known: number | undefined): { store: Store; counts: () => number; stops: () => number } {
  let counts = 0;
  let stops = 0;
  const count = { known, stop: async () => void stops++ } as unknown as InstanceCount;
  const store = {
    countInstances() {
      counts++;
      return count;
    },
  } as unknown as Store;
  return { store, counts: () => counts, stops: () => stops };
}

test("instances are counted once a rule needs the number, and only once", () => {
  const { store, counts } = counting(4);
  const share = new InstanceShare(store, undefined);
  share.countFor([rule("allow"), rule("deny")]);
  expect([counts(), share.instances]).toEqual([0, 1]);
  // The policy `local` is the default.
  share.countFor([rule()]);
  share.countFor([rule("local")]);
  expect([counts(), share.instances]).toEqual([1, 4]);
});

test("a configured number is not counted", () => {
  const { store, counts } = counting(4);
  const share = new InstanceShare(store, 7);
  share.countFor([rule()]);
  expect([counts(), share.instances]).toEqual([0, 7]);
});

test("before the store was reached, and with a store that cannot count, there is one instance", () => {
  const share = new InstanceShare(counting(undefined).store, undefined);
  share.countFor([rule()]);
  expect(share.instances).toBe(1);
  expect(new InstanceShare({} as Store, undefined).instances).toBe(1);
});

test("a stopped share counts no more", async () => {
  const { store, counts, stops } = counting(4);
  const share = new InstanceShare(store, undefined);
  share.countFor([rule()]);
  await share.stop();
  expect(stops()).toBe(1);
  const late = new InstanceShare(store, undefined);
  await late.stop();
  late.countFor([rule()]);
  expect(counts()).toBe(1);
});
