import { expect, test } from "vitest";
import { CachedValue } from "./cached-value.js";

/** A value whose reads end when the test lets them. */
function slowly(): { cached: CachedValue<string>; reads: ((value: string) => void)[] } {
  const reads: ((value: string) => void)[] = [];
  const read = (): Promise<string> => new Promise((resolve) => reads.push(resolve));
  return { cached: new CachedValue(read, { initial: "", onError: () => undefined }), reads };
}

test("what was being read when the value expired answers nobody that asks afterwards", async () => {
  const { cached, reads } = slowly();
  const early = cached.get();
  cached.expire();
  reads[0]!("before the change");
  expect(await early).toBe("before the change");
  const late = cached.get();
  expect(reads).toHaveLength(2);
  reads[1]!("after it");
  expect(await late).toBe("after it");
});

test("a read from before the expiry that ends last does not replace what was read after it", async () => {
  const { cached, reads } = slowly();
  const early = cached.get();
  cached.expire();
  const late = cached.get();
  reads[1]!("after the change");
  await late;
  reads[0]!("before it");
  await early;
  expect(await cached.get()).toBe("after the change");
});
