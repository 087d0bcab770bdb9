/**
 * A server that goes on serving under three times its load: critical requests are served, the others as far as there is room.
 *   node examples/library/load-shedding.mjs
 */
import { createLimiter } from "sluice";

const limiter = createLimiter({
  rules: [
    {
      id: "keep-serving",
      key: [],
      algorithm: "load-shedding",
      signal: "inflight",
      limit: 10,
      class: { attribute: "criticality", default: "normal" },
    },
  ],
});

/** Ten at once are what this server can do. */
async function handle(criticality) {
  const decision = await limiter.check({ criticality });
  if (!decision.allowed) return 503;
  try {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return 200;
  } finally {
    // Frees the place when the work is done, however it ends.
    await decision.lease?.release();
  }
}

const served = { critical: 0, normal: 0 };
const asked = { critical: 0, normal: 0 };
const running = [];
for (let i = 0; i < 300; i++) {
  const criticality = i % 10 === 0 ? "critical" : "normal";
  asked[criticality]++;
  running.push(handle(criticality).then((status) => status === 200 && served[criticality]++));
  if (i % 3 === 2) await new Promise((resolve) => setTimeout(resolve, 2));
}
await Promise.all(running);
console.log(`critical: ${served.critical} of ${asked.critical} served`);
console.log(`normal: ${served.normal < asked.normal ? "some" : "all"} of ${asked.normal} served`);
await limiter.close();
