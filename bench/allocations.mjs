/**
 * Bytes that a check allocates in the Node process, and what its parts cost: matching rules and building keys, on their own.
 * In a process of its own whose young generation is so large that nothing is collected meanwhile.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { createLimiter } from "sluice";

const COUNT = 50_000;
const users = Array.from({ length: 1_000 }, (_, i) => `user-${i}`);
const rule = { id: "r", key: ["user"], limit: 1_000_000, window: "1h" };

export async function allocationsSection() {
  const flags = ["--expose-gc", "--min-semi-space-size=256", "--max-semi-space-size=256"];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, fileURLToPath(import.meta.url)]);
  return JSON.parse(stdout);
}

export function printAllocations(rows) {
  console.log("\nBytes allocated by a check, memory store");
  for (const { name, bytes } of rows) console.log(`  ${name.padEnd(40)} ${String(Math.round(bytes)).padStart(8)}`);
}

async function bytesOf(check) {
  for (let i = 0; i < COUNT; i++) await check(users[i % users.length]);
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < COUNT; i++) await check(users[i % users.length]);
  return (process.memoryUsage().heapUsed - before) / COUNT;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const peer = new RateLimiterMemory({ points: 1_000_000, duration: 3_600 });
  const rows = [
    { name: "an await of nothing", bytes: await bytesOf(() => Promise.resolve()) },
    { name: "rate-limiter-flexible, fixed window", bytes: await bytesOf((user) => peer.consume(user)) },
  ];
  for (const algorithm of ["token-bucket", "fixed-window", "sliding-counter", "rolling-window"]) {
    const limiter = createLimiter({ rules: [{ ...rule, algorithm }] });
    rows.push({ name: `sluice, ${algorithm}`, bytes: await bytesOf((user) => limiter.check({ user })) });
    await limiter.close();
  }
  const three = createLimiter({
    rules: ["a", "b", "c"].map((id) => ({ ...rule, id, algorithm: "token-bucket" })),
  });
  rows.push({ name: "sluice, three token buckets", bytes: await bytesOf((user) => three.check({ user })) });
  console.log(JSON.stringify(rows));
  process.exit();
}
