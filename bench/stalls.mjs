/**
 * How long one hostile request holds up all others: the longest turn of the service's event loop, in time of its main thread on a
 * core (Linux, /proc), so that a busy machine does not count. The aim is 20 ms. The service is a process of its own: this file, forked.
 *   node bench/stalls.mjs
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const AIM_MS = 20;
const TOKEN = "a-token-of-the-bench";
const ROUNDS = 3;
const ENVOY_LIMITS = 100_000;
const rule = (id, more = {}) => ({ id, key: ["user"], algorithm: "fixed-window", limit: 5, window: "1m", ...more });
const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const fields = (count, value) => Object.fromEntries(many(count, (i) => [`f${i}`, value]));
const overrides = (count) => many(count, (i) => ({ match: { user: `u${i}` }, limit: i + 1 }));
const ofTier = (i) => rule(`r${i}`, { match: { tier: `t${i}` } });

const requests = [
  ["PUT 60 000 rules", "PUT", "/admin/v1/rules", { rules: many(60_000, ofTier) }],
  ["explain on 60 000 rules", "POST", "/v1/explain", { attributes: { user: "a" } }],
  ["PUT of one small rule among 60 000", "PUT", "/admin/v1/rules/r7", ofTier(7)],
  ["batch with 50 000 unknown fields", "POST", "/v1/check/batch", { requests: [], ...fields(50_000, 1) }],
  [
    "batch with 40 000 wrong attributes",
    "POST",
    "/v1/check/batch",
    { requests: [{ attributes: fields(40_000, null) }] },
  ],
  ["check with 5 000 unknown fields", "POST", "/v1/check", { attributes: {}, ...fields(5_000, 1) }],
  [
    "PUT 10 000 rules of 10 overrides",
    "PUT",
    "/admin/v1/rules",
    { rules: many(10_000, (i) => rule(`r${i}`, { match: { tier: `t${i}` }, overrides: overrides(10) })) },
  ],
  [
    "PUT one rule of 100 000 overrides",
    "PUT",
    "/admin/v1/rules",
    { rules: [rule("r", { overrides: overrides(100_000) })] },
  ],
  [
    "PUT 20 000 globs",
    "PUT",
    "/admin/v1/rules",
    { rules: many(20_000, (i) => rule(`g${i}`, { match: { path: `/v1/*/items${i}/*` } })) },
  ],
];

export async function stallsSection() {
  const service = fork(fileURLToPath(import.meta.url), ["service"]);
  const longest = async () => {
    service.send("longest");
    return (await once(service, "message"))[0];
  };
  try {
    const [{ origin, limits }] = await once(service, "message");
    const rows = [];
    for (const [name, method, path, value] of requests) {
      const body = JSON.stringify(value);
      const headers = { "content-type": "application/json", authorization: `Bearer ${TOKEN}` };
      let longestMs = 0;
      let status = 0;
      for (let i = 0; i < ROUNDS; i++) {
        await longest();
        const reply = await fetch(`${origin}${path}`, { method, headers, body });
        await reply.arrayBuffer();
        status = reply.status;
        longestMs = Math.max(longestMs, await longest());
      }
      rows.push({ name, status, bytes: body.length, longestMs });
    }
    rows.push(await envoyRow({ origin, limits, longest }));
    return rows;
  } finally {
    service.kill();
  }
}

/** A folder of Envoy's limits is replaced: read on a thread, put together in slices. */
async function envoyRow({ origin, limits, longest }) {
  const loaded = async () => {
    const text = await (await fetch(`${origin}/metrics`)).text();
    return Number(/sluice_envoy_config_reloads_total\{outcome="loaded"\} (\d+)/.exec(text)?.[1] ?? 0);
  };
  const before = await loaded();
  const text = `domain: d\ndescriptors:\n${many(ENVOY_LIMITS, (i) => `  - { key: user, value: u${i}, rate_limit: { unit: day, requests_per_unit: 5 } }\n`).join("")}`;
  await longest();
  writeFileSync(join(limits, "d.yaml"), text);
  while ((await loaded()) === before) await new Promise((resolve) => setTimeout(resolve, 200));
  const longestMs = await longest();
  return {
    name: `${ENVOY_LIMITS / 1_000} 000 limits of Envoy in a folder`,
    status: 200,
    bytes: text.length,
    longestMs,
  };
}

export function printStalls(rows) {
  console.log(`\nThe longest turn of the event loop under a hostile request, time on a core (aim: ${AIM_MS} ms)`);
  for (const { name, status, bytes, longestMs } of rows) {
    const size = `${Math.round(bytes / 1024)} KiB`.padStart(9);
    console.log(`  ${name.padEnd(40)} ${size}  ${status}  ${longestMs.toFixed(1).padStart(7)} ms`);
  }
}

async function serve() {
  const server = new URL("../packages/server/dist/", import.meta.url);
  const { startService } = await import(new URL("service/service.js", server).href);
  const { resolveSettings } = await import(new URL("settings/settings.js", server).href);
  const { createLog } = await import(new URL("log.js", server).href);
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  process.on("SIGTERM", () => process.exit());
  const limits = join(folder, "limits");
  mkdirSync(limits);
  const own = { "data-folder": folder, "envoy-config": limits, "admin-token": TOKEN };
  const flags = { port: "0", "grpc-port": "0", "log-level": "error", ...own };
  const service = await startService({ settings: resolveSettings({ flags, env: {} }), log: createLog("error") });
  const threadMs = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "latin1").split(" ")[0]) / 1e6;
  let longestMs = 0;
  let lastMs = threadMs();
  const turn = () => {
    longestMs = Math.max(longestMs, threadMs() - lastMs);
    lastMs = threadMs();
    setTimeout(turn, 0);
  };
  turn();
  process.on("message", () => {
    process.send?.(longestMs);
    longestMs = 0;
  });
  process.send?.({ origin: service.http, limits });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === "service") await serve();
  else printStalls(await stallsSection());
}
