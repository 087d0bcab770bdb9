import { expect, test } from "vitest";
import { Cleanup } from "./cleanup.js";

test("resources are closed in reverse order, one at a time and once each", async () => {
  const closed: string[] = [];
  const cleanup = new Cleanup();
  cleanup.add(() => closed.push("limiter"));
  cleanup.add(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    closed.push("history");
  });
  cleanup.add(() => closed.push("listener"));
  await cleanup.close();
  await cleanup.close();
  expect(closed).toEqual(["listener", "history", "limiter"]);
});
