/**
 * Abuse: a deny list, an allow list, blocks that grow, addresses that probe for what is not there, a block by hand and its end.
 *
 *   node examples/recipes/abuse-and-blocks.mjs
 */
import { readFileSync } from "node:fs";
import { createLimiter } from "sluice";
import { virtualClock } from "sluice/testing";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("abuse-and-blocks.yaml", import.meta.url), "utf8"));
const clock = virtualClock();
const limiter = createLimiter({ clock, rules });
const path = "/articles/42";
const minutes = (ms) => (ms >= 2 ** 31 - 1 ? "for good" : `for ${Math.ceil(ms / 60_000)} min`);

async function read(name, ip, times) {
  let passed = 0;
  let refusal;
  for (let i = 0; i < times; i++) {
    const decision = await limiter.check({ path, ip });
    if (decision.allowed) passed++;
    else refusal = decision;
  }
  const end = refusal === undefined ? "" : `, then refused (${refusal.reason}) ${minutes(refusal.retryAfterMs)}`;
  console.log(`${name}: ${passed} of ${times}${end}`);
}

await read("a reader", "203.0.113.9", 10);
await read("a scraper", "203.0.113.1", 100);
clock.advance("5m");
await read("the scraper, after its block", "203.0.113.1", 100);
await read("on the deny list", "198.51.100.7", 3);
await read("our monitoring", "192.0.2.10", 200);

// A prober: the server asks with the status of what it is about to answer.
let probes = 0;
const prober = { ip: "203.0.113.2", status: 404 };
while ((await limiter.check(prober)).allowed) probes++;
console.log(`a prober: blocked after ${probes} pages that are not there`);

// By hand, as `sluice block scraping ip=203.0.113.9 --for 2h` and `sluice reset` do on a service.
await limiter.block("scraping", { ip: "203.0.113.9" }, 2 * 3_600_000);
await read("the reader, blocked by hand", "203.0.113.9", 1);
await limiter.reset("scraping", { ip: "203.0.113.9" });
await read("the reader, after the reset", "203.0.113.9", 1);
await limiter.close();
