/**
 * What the LLM gateway adds to the first byte of a stream, beside a bare proxy that passes bytes and knows nothing, in the same run.
 *
 *   npm run build && node bench/llm.mjs [--quick]
 *
 * Vendor, bare proxy, gateways and Redis are processes of their own. Calls take turns, one at a time; medians count. A vendor's first token
 * takes 100 ms and more: the bar is held at 50. At 0 ms the figure is the proxy's own time.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { median } from "./measure.mjs";
import { startRedis } from "./redis-server.mjs";
import { printBars } from "./report.mjs";

const MOST_RATIO = 1.1;
const DELAYS_MS = [50, 0];
const WARM_UP_CALLS = 1_500;
const self = fileURLToPath(import.meta.url);

/** Whose calls, and where the counters are. @type {{ shape: Shape, store: "memory" | "redis" }[]} */
const VARIANTS = [
  { shape: "openai", store: "memory" },
  { shape: "openai", store: "redis" },
  { shape: "anthropic", store: "memory" },
];

/** @typedef {"openai" | "anthropic"} Shape */
/** @typedef {{ url: string, stop: () => Promise<void> | void }} Contestant */

/** @param {{ quick: boolean }} options */
export async function llmSection({ quick }) {
  const vendor = await start("vendor");
  const bare = await start("bare", vendor.url);
  const redis = await startRedis();
  /** @type {Row[]} */
  const rows = [];
  try {
    for (const { shape, store } of VARIANTS) {
      const gateway = await startGateway(vendor.url, { shape, store: store === "redis" ? redis.url : store });
      try {
        // Code that ran a few times only is not compiled yet: a proxy that has just started is not what anyone waits for.
        for (let i = 0; i < WARM_UP_CALLS; i++) {
          for (const { url } of [vendor, bare, gateway]) await firstByteMs(url, { shape, delayMs: 0 });
        }
        for (const delayMs of DELAYS_MS) {
          const figures = await measure({ vendor, bare, gateway, shape, delayMs, calls: quick ? 60 : 300 });
          rows.push({ shape, store, ...figures });
        }
      } finally {
        await gateway.stop();
      }
    }
    return rows;
  } finally {
    for (const { stop } of [redis, bare, vendor]) await stop();
  }
}

/** @typedef {{ delayMs: number, directMs: number, bareMs: number, gatewayMs: number, ratio: number }} Figures */
/** @typedef {Figures & { shape: Shape, store: string }} Row */

/** @param {Awaited<ReturnType<typeof llmSection>>} rows */
export function printLlm(rows) {
  console.log("\nFirst byte of a stream through the LLM gateway (three rules), against a bare proxy");
  for (const { shape, store, delayMs, directMs, bareMs, gatewayMs, ratio } of rows) {
    console.log(
      `  ${shape}, ${store}; vendor's first token after ${delayMs} ms: direct ${directMs.toFixed(2)}, bare proxy ${bareMs.toFixed(2)}, ` +
        `gateway ${gatewayMs.toFixed(2)} ms; ratio ${ratio.toFixed(3)}`,
    );
  }
}

/** @param {Awaited<ReturnType<typeof llmSection>>} rows */
export function llmBars(rows) {
  return VARIANTS.map(({ shape, store }) => {
    const row = rows.find((one) => one.delayMs === DELAYS_MS[0] && one.shape === shape && one.store === store);
    const measured = row?.ratio ?? Number.NaN;
    return {
      what: `LLM gateway (${shape}, ${store}): a stream's first byte against a bare proxy, first token after 50 ms`,
      wanted: `at most ${MOST_RATIO}`,
      measured,
      met: measured <= MOST_RATIO,
    };
  });
}

/**
 * @param {{ vendor: Contestant, bare: Contestant, gateway: Contestant, shape: Shape, delayMs: number, calls: number }} options
 * @returns {Promise<Figures>}
 */
async function measure({ vendor, bare, gateway, shape, delayMs, calls }) {
  const contestants = { direct: vendor, bare, gateway };
  /** @type {Record<string, number[]>} */
  const tookMs = { direct: [], bare: [], gateway: [] };
  for (let i = 0; i < calls; i++) {
    for (const [name, { url }] of Object.entries(contestants))
      tookMs[name]?.push(await firstByteMs(url, { shape, delayMs }));
  }
  const of = (/** @type {string} */ name) => median(tookMs[name] ?? []);
  const [directMs, bareMs, gatewayMs] = [of("direct"), of("bare"), of("gateway")];
  return { delayMs, directMs, bareMs, gatewayMs, ratio: gatewayMs / bareMs };
}

const prompt = "a prompt of usual length, with a question and some text beside it ".repeat(30);

const paths = { openai: "/v1/chat/completions", anthropic: "/v1/messages" };

/** @param {string} url @param {{ shape: Shape, delayMs: number }} call @returns {Promise<number>} */
function firstByteMs(url, { shape, delayMs }) {
  const body = JSON.stringify({
    model: `delay-${delayMs}`,
    stream: true,
    max_tokens: 100,
    messages: [{ role: "user", content: prompt }],
  });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sentMs = performance.now();
    const call = request(url + paths[shape], { method: "POST", headers }, (answer) => {
      answer.once("data", () => {
        const tookMs = performance.now() - sentMs;
        answer.resume().once("end", () => resolve(tookMs));
      });
    });
    call.once("error", reject).end(body);
  });
}

/** @param {string} kind @param {string} [upstream] @returns {Promise<Contestant>} */
async function start(kind, upstream = "") {
  const child = fork(self, [kind, upstream]);
  const [url] = await once(child, "message");
  return { url, stop: () => void child.kill() };
}

/** @param {string} upstream @param {{ shape: Shape, store: string }} options @returns {Promise<Contestant>} */
async function startGateway(upstream, { shape, store }) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const rule = { key: [], limit: 1_000_000_000, window: "1m" };
  const estimate = { attribute: "max_tokens", default: 500 };
  const rules = [
    { ...rule, id: "requests", algorithm: "token-bucket" },
    { ...rule, id: "tokens", algorithm: "token-bucket", cost: { attribute: "completion_tokens" }, estimate },
    { id: "streams", key: [], algorithm: "concurrency", limit: 1_000, match: { stream: true } },
  ];
  writeFileSync(join(folder, "rules.json"), JSON.stringify({ rules }));
  const bin = fileURLToPath(new URL("../packages/server/bin/sluice.js", import.meta.url));
  const ports = ["port", "grpc-port", "proxy-port"].flatMap((name) => [`--${name}`, "0"]);
  const settings = ["--upstream", upstream, "--usage", shape, "--store", store, "--rules", "rules.json"];
  settings.push("--data-folder", folder);
  const child = fork(bin, ["serve", ...ports, ...settings], { cwd: folder, silent: true });
  let output = "";
  const proxy = /proxy +(http\S+) ->/;
  for await (const chunk of child.stdout ?? []) {
    output += chunk;
    if (proxy.test(output) && output.includes("/v1/check -H")) break;
  }
  const stop = async () => {
    const ended = once(child, "exit");
    child.kill();
    // Until then the service writes into its folder.
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: proxy.exec(output)?.[1] ?? "", stop };
}

const openaiEvent = 'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n';
const anthropicEvent =
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}\n\n';

/** A stream of ten events: the first after the time that the model's name says, the others at once. */
function serveVendor() {
  return createServer(async (call, response) => {
    let text = "";
    for await (const chunk of call) text += chunk;
    const delayMs = Number(/delay-(\d+)/.exec(text)?.[1] ?? 0);
    const event = call.url === paths.anthropic ? anthropicEvent : openaiEvent;
    const answer = () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event);
      response.end(event === openaiEvent ? `${event.repeat(9)}data: [DONE]\n\n` : event.repeat(9));
    };
    if (delayMs === 0) answer();
    else setTimeout(answer, delayMs);
  });
}

/** The least that a proxy can do. @param {string} upstream */
function serveBare(upstream) {
  return createServer((call, response) => {
    const passed = request(upstream + call.url, { method: call.method, headers: call.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    call.pipe(passed);
  });
}

if (process.argv[1] === self) {
  const [, , kind, upstream = ""] = process.argv;
  if (kind === "vendor" || kind === "bare") {
    const server = kind === "vendor" ? serveVendor() : serveBare(upstream);
    server.listen(0, "127.0.0.1", () => {
      const address = /** @type {import("node:net").AddressInfo} */ (server.address());
      process.send?.(`http://127.0.0.1:${address.port}`);
    });
    process.once("disconnect", () => process.exit());
  } else {
    const rows = await llmSection({ quick: kind === "--quick" });
    printLlm(rows);
    printBars(llmBars(rows));
  }
}
