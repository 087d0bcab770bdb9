/**
 * What the LLM gateway adds to the first byte of a stream, beside a bare proxy that passes bytes and knows nothing, in the same run.
 *
 *   npm run build && node bench/llm.mjs [--quick]
 *
 * Vendor, bare proxy and gateway are processes of their own. Calls take turns, one at a time; medians count. A vendor's first token takes
 * 100 ms and more: the bar is held at 50. At 0 ms the figure is the proxy's own time.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { median } from "./measure.mjs";
import { printBars } from "./report.mjs";

const MOST_RATIO = 1.1;
const DELAYS_MS = [50, 0];
const WARM_UP_CALLS = 1_500;
const self = fileURLToPath(import.meta.url);

/** @typedef {{ url: string, stop: () => void }} Contestant */

/** @param {{ quick: boolean }} options */
export async function llmSection({ quick }) {
  const vendor = await start("vendor");
  const bare = await start("bare", vendor.url);
  const gateway = await startGateway(vendor.url);
  try {
    // Code that ran a few times only is not compiled yet: a proxy that has just started is not what anyone waits for.
    for (let i = 0; i < WARM_UP_CALLS; i++) {
      for (const { url } of [vendor, bare, gateway]) await firstByteMs(url, 0);
    }
    /** @type {{ delayMs: number, directMs: number, bareMs: number, gatewayMs: number, ratio: number }[]} */
    const rows = [];
    for (const delayMs of DELAYS_MS)
      rows.push(await measure({ vendor, bare, gateway, delayMs, calls: quick ? 60 : 300 }));
    return rows;
  } finally {
    for (const { stop } of [gateway, bare, vendor]) stop();
  }
}

/** @param {Awaited<ReturnType<typeof llmSection>>} rows */
export function printLlm(rows) {
  console.log("\nFirst byte of a stream through the LLM gateway (--usage openai, three rules), against a bare proxy");
  for (const { delayMs, directMs, bareMs, gatewayMs, ratio } of rows) {
    console.log(
      `  vendor's first token after ${delayMs} ms: direct ${directMs.toFixed(2)}, bare proxy ${bareMs.toFixed(2)}, ` +
        `gateway ${gatewayMs.toFixed(2)} ms; ratio ${ratio.toFixed(3)}`,
    );
  }
}

/** @param {Awaited<ReturnType<typeof llmSection>>} rows */
export function llmBars(rows) {
  const measured = rows.find(({ delayMs }) => delayMs === DELAYS_MS[0])?.ratio ?? Number.NaN;
  return [
    {
      what: "LLM gateway: a stream's first byte against a bare proxy, first token after 50 ms",
      wanted: `at most ${MOST_RATIO}`,
      measured,
      met: measured <= MOST_RATIO,
    },
  ];
}

/** @param {{ vendor: Contestant, bare: Contestant, gateway: Contestant, delayMs: number, calls: number }} options */
async function measure({ vendor, bare, gateway, delayMs, calls }) {
  const contestants = { direct: vendor, bare, gateway };
  /** @type {Record<string, number[]>} */
  const tookMs = { direct: [], bare: [], gateway: [] };
  for (let i = 0; i < calls; i++) {
    for (const [name, { url }] of Object.entries(contestants)) tookMs[name]?.push(await firstByteMs(url, delayMs));
  }
  const of = (/** @type {string} */ name) => median(tookMs[name] ?? []);
  const [directMs, bareMs, gatewayMs] = [of("direct"), of("bare"), of("gateway")];
  return { delayMs, directMs, bareMs, gatewayMs, ratio: gatewayMs / bareMs };
}

const prompt = "a prompt of usual length, with a question and some text beside it ".repeat(30);

/** @param {string} url @param {number} delayMs @returns {Promise<number>} */
function firstByteMs(url, delayMs) {
  const body = JSON.stringify({
    model: `delay-${delayMs}`,
    stream: true,
    messages: [{ role: "user", content: prompt }],
  });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sentMs = performance.now();
    const call = request(`${url}/v1/chat/completions`, { method: "POST", headers }, (answer) => {
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
  return { url, stop: () => child.kill() };
}

/** @param {string} upstream @returns {Promise<Contestant>} */
async function startGateway(upstream) {
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
  const settings = ["--upstream", upstream, "--usage", "openai", "--rules", "rules.json", "--data-folder", folder];
  const child = fork(bin, ["serve", ...ports, ...settings], { cwd: folder, silent: true });
  let output = "";
  const proxy = /proxy +(http\S+) ->/;
  for await (const chunk of child.stdout ?? []) {
    output += chunk;
    if (proxy.test(output) && output.includes("/v1/check -H")) break;
  }
  const stop = () => {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: proxy.exec(output)?.[1] ?? "", stop };
}

/** A stream of ten events: the first after the time that the model's name says, the others at once. */
function serveVendor() {
  const event = 'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n';
  return createServer(async (call, response) => {
    let text = "";
    for await (const chunk of call) text += chunk;
    const delayMs = Number(/delay-(\d+)/.exec(text)?.[1] ?? 0);
    const answer = () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event);
      response.end(`${event.repeat(9)}data: [DONE]\n\n`);
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
