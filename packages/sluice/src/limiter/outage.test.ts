import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SluiceError } from "../errors.js";
import { Outage } from "./outage.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function outageOf(store: { whyNotReady: Error | undefined }): { outage: Outage; causes: unknown[] } {
  const causes: unknown[] = [];
  const outage = new Outage({
    store: { ready: async () => store.whyNotReady === undefined, whyNotReady: store.whyNotReady },
    degraded: (cause) => causes.push(cause),
    recovered: () => undefined,
  });
  return { outage, causes };
}
const silence = new SluiceError("store-unavailable", "no answer within 200 ms");

test("a failure without a cause is reported as it is where the store is ready again by then", async () => {
  const { outage, causes } = outageOf({ whyNotReady: undefined });
  outage.failed(silence);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(causes).toEqual([silence]);
});

test("a failure without a cause is reported with the cause that a probe finds", async () => {
  const why = new Error("LOADING");
  const { outage, causes } = outageOf({ whyNotReady: why });
  outage.failed(silence);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(causes).toEqual([why]);
});
