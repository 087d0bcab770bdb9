/**
 * What checks notice of the work of administration: the p99 latency of a steady load while rules are swapped and validated, and while the
 * console's pages are read, over and over, against its p99 without. The aim is at most twice.
 *
 *   npm run build && node bench/undisturbed.mjs
 *
 * Service, load and administration are processes of their own, and share the machine: on two cores a thread that validates, and the body
 * on its way, take time from all of them.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { median } from "./measure.mjs";
import { startRedis } from "./redis-server.mjs";
import { printBars } from "./report.mjs";
import { startAdministered } from "./rls-service.mjs";
import { figures } from "./service-load.mjs";

const AIM = 2;
const TOKEN = "a-token-of-the-bench";
const USERS = 10_000;
const A_SECOND = 1_500;
const CONNECTIONS = 16;
const SECONDS = 4;
const ROUNDS = 3;
/** Between two works of administration: a script that reads or writes ten times a second is a busy one. */
const PAUSE_MS = 100;
const NEIGHBOUR_NICENESS = 10;
const self = fileURLToPath(import.meta.url);

const rule = (id, more = {}) => ({ id, key: ["user"], algorithm: "fixed-window", limit: 1e6, window: "1m", ...more });
const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const rulesOf = (count, more) => ({
  rules: [rule("all"), ...many(count, (i) => rule(`r${i}`, { match: { tier: `t${i}` }, ...more }))],
});

/**
 * What happens meanwhile, again and again; each resolves with its status. Bodies are spelled once: spelling them would load the machine, not
 * the service. The neighbour shows what of the latency is the machine's: it has nothing to do with the service but two cores.
 */
function workOf(ask, neighbour) {
  let round = 0;
  const swaps = [rulesOf(10_000), rulesOf(10_000, { limit: 999_999 })].map((rules) => JSON.stringify(rules));
  const hundredThousand = shortRules();
  const wrong = JSON.stringify(rulesOf(20_000, { limit: -1 }));
  return {
    nothing: undefined,
    "another process parses": async () => {
      neighbour.send("parse");
      await once(neighbour, "message");
      return 0;
    },
    "swap 10 000 rules": () => ask("PUT", "/admin/v1/rules", swaps[round++ % 2]),
    "validate 100 000 rules": () => ask("PUT", "/admin/v1/rules?dryRun=true", hundredThousand),
    "a body of 20 000 mistakes": () => ask("PUT", "/admin/v1/rules?dryRun=true", wrong),
    "store view": () => ask("GET", "/admin/v1/store"),
    "top keys": () => ask("GET", "/admin/v1/keys/top"),
    history: () => ask("GET", "/admin/v1/stats?window=day"),
    "list of rules": () => ask("GET", "/admin/v1/rules"),
  };
}

/** As short as rules can be: a document has at most 8 MiB. */
function shortRules() {
  return JSON.stringify({
    rules: many(100_000, (i) => ({ id: `r${i}`, key: [], algorithm: "gcra", limit: 1, window: "1s" })),
  });
}

/** Four times what the service parses of such a document, about as long as it validates it, at the priority of its thread. */
async function asNeighbour() {
  setPriority(NEIGHBOUR_NICENESS);
  const text = shortRules();
  for await (const _ of onMessages()) {
    for (let i = 0; i < 4; i++) JSON.stringify(JSON.parse(text));
    process.send("parsed");
  }
}

/** A check on each connection in turn, at a steady pace. One that waits behind a late answer of its connection counts from when it was asked. */
async function loadAtPace({ port, seconds }) {
  const count = A_SECOND * seconds;
  const latencies = new Float64Array(count);
  const askedAtMs = new Float64Array(count);
  const everyMs = 1_000 / A_SECOND;
  const message = (i) => {
    const body = JSON.stringify({ attributes: { user: `u${i % USERS}` } });
    return `POST /v1/check HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  };
  let answered = 0;
  const { promise: all, resolve: done } = withResolvers();
  const sockets = await Promise.all(
    many(CONNECTIONS, async () => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      await once(socket, "connect");
      const due = [];
      let number;
      const next = () => {
        number = due.shift();
        if (number !== undefined) socket.write(message(number));
      };
      socket.on("data", (chunk) => {
        // Answers are shorter than a segment.
        if (!chunk.toString("latin1", 0, 12).endsWith("200")) throw new Error(chunk.toString("latin1", 0, 300));
        latencies[number] = performance.now() - askedAtMs[number];
        if (++answered === count) done();
        next();
      });
      const ask = (i) => {
        askedAtMs[i] = performance.now();
        due.push(i);
        if (number === undefined) next();
      };
      return { socket, ask };
    }),
  );
  const startMs = performance.now();
  for (let sent = 0; sent < count; ) {
    const upTo = Math.min(count, Math.floor((performance.now() - startMs) / everyMs) + 1);
    for (; sent < upTo; sent++) sockets[sent % CONNECTIONS].ask(sent);
    await sleep(1);
  }
  await all;
  for (const { socket } of sockets) socket.destroy();
  return figures(latencies, performance.now() - startMs);
}

/** Node.js 20 has no Promise.withResolvers. */
function withResolvers() {
  let resolve;
  const promise = new Promise((settled) => {
    resolve = settled;
  });
  return { promise, resolve };
}

async function asLoad() {
  for await (const [load] of onMessages()) process.send(await loadAtPace(load));
}

async function* onMessages() {
  for (;;) yield await once(process, "message");
}

export async function undisturbedSection() {
  const redis = await startRedis();
  const service = await startAdministered(["--store", redis.url, "--store-deadline", "2s", "--admin-token", TOKEN]);
  const load = fork(self, ["--as-load"]);
  const neighbour = fork(self, ["--as-neighbour"]);
  const measured = async () => {
    load.send({ port: service.httpPort, seconds: SECONDS });
    return (await once(load, "message"))[0];
  };
  const ask = async (method, path, body) => {
    const headers = { authorization: `Bearer ${TOKEN}`, ...(body && { "content-type": "application/json" }) };
    const reply = await fetch(`http://127.0.0.1:${service.httpPort}${path}`, { method, headers, body });
    const text = await reply.text();
    if (reply.status >= 500) throw new Error(`${method} ${path}: ${reply.status} ${text.slice(0, 200)}`);
    return reply.status;
  };
  try {
    await ask("PUT", "/admin/v1/rules", JSON.stringify(rulesOf(10)));
    await measured();
    const runs = {};
    const works = workOf(ask, neighbour);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [name, work] of Object.entries(works)) {
        let isOver = false;
        let times = 0;
        let status = 0;
        const loop = (async () => {
          for (; work !== undefined && !isOver; times++) {
            status = await work();
            await sleep(PAUSE_MS);
          }
        })();
        const { p50Us, p99Us } = await measured();
        isOver = true;
        await loop;
        runs[name] ??= [];
        runs[name].push({ p50Us, p99Us, times, status });
      }
    }
    return Object.entries(runs).map(([name, of]) => ({
      name,
      status: of[0].status,
      times: median(of.map(({ times }) => times)),
      p50Us: median(of.map(({ p50Us }) => p50Us)),
      p99Us: median(of.map(({ p99Us }) => p99Us)),
      // Of each round: a minute in which the machine was slow counts for both.
      ratio: median(of.map(({ p99Us }, i) => p99Us / runs.nothing[i].p99Us)),
    }));
  } finally {
    load.kill();
    neighbour.kill();
    await service.stop();
    await redis.stop();
  }
}

export function printUndisturbed(rows) {
  console.log(`\n${A_SECOND} checks a second over HTTP on Redis, while administration does this over and over`);
  console.log(
    `  ${"".padEnd(28)}${["times", "status", "p50 us", "p99 us", "of quiet"].map((name) => name.padStart(10)).join("")}`,
  );
  for (const { name, times, status, p50Us, p99Us, ratio } of rows) {
    const cells = [times, status, p50Us.toFixed(0), p99Us.toFixed(0), ratio.toFixed(2)];
    console.log(`  ${name.padEnd(28)}${cells.map((cell) => String(cell).padStart(10)).join("")}`);
  }
}

export function undisturbedBars(rows) {
  return rows
    .filter(({ status }) => status > 0)
    .map(({ name, ratio }) => ({
      what: `p99 of checks, ${name}, against quiet`,
      wanted: `at most ${AIM}`,
      measured: ratio,
      met: ratio <= AIM,
    }));
}

if (process.argv[1] === self) {
  if (process.argv.includes("--as-load")) await asLoad();
  else if (process.argv.includes("--as-neighbour")) await asNeighbour();
  else {
    const rows = await undisturbedSection();
    printUndisturbed(rows);
    printBars(undisturbedBars(rows));
  }
}
