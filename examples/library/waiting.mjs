// Waiting instead of refusing: three callers at two a second, and one that leaves.
//   node examples/library/waiting.mjs
import { createLimiter } from "sluice";

const limiter = createLimiter({
  rules: [{ id: "paced", key: ["partner"], algorithm: "gcra", limit: 2, window: "1s", burst: 1, maxWait: "5s" }],
});

const startedAt = performance.now();
const elapsed = () => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;

async function call(name, signal) {
  try {
    await limiter.acquire({ partner: "acme" }, { signal });
    console.log(`${elapsed()}  ${name}: my turn`);
  } catch {
    console.log(`${elapsed()}  ${name}: left, my turn is free`);
  }
}

const leaving = AbortSignal.timeout(100);
await Promise.all([
  call("first"),
  call("second"),
  call("third", leaving),
  // Asks after the third has left, and takes over its turn.
  new Promise((resolve) => setTimeout(resolve, 200)).then(() => call("fourth")),
]);
await limiter.close();
