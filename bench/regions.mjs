/**
 * Regions on real Redis servers: twenty of them, and a home behind a proxy that adds 100 ms each way. One hot key with `scope: global`,
 * whose hottest region moves on. Uses are stamped by the region's Redis, which shares a clock with home: so every window is judged exactly.
 */
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";
import { startRedis } from "./redis-server.mjs";

const REGIONS = 20;
const EACH_WAY_MS = 100;
const LIMIT = 12_000;
const WINDOW_MS = 30_000;
const TERM_MS = 3_000;
const HOT_SPOT_MS = 20_000;
const TICK_MS = 5;
const CUT_MS = [20_000, 50_000];
const rule = {
  key: [],
  scope: "global",
  algorithm: "rolling-window",
  limit: LIMIT,
  window: "30s",
  onStoreFailure: "local",
};

/** Three minutes: windows of real time. */
export async function regionsSection() {
  const home = await startRedis();
  const stores = await Promise.all(Array.from({ length: REGIONS }, startRedis));
  const proxy = await delayingProxy(home.port);
  const cuttable = await delayingProxy(home.port);
  const near = { stores, home: proxy.url };
  try {
    const calm = await run({ ...near, id: "calm", load: 0.8, runMs: 90_000 });
    const [overload, cut] = await Promise.all([
      run({ ...near, id: "overload", load: 2, runMs: 90_000 }),
      run({ ...near, id: "cut", load: 2, runMs: 75_000, cuttable }),
    ]);
    return { overload, calm, cut };
  } finally {
    for (const { close } of [proxy, cuttable]) close();
    await Promise.all([home, ...stores].map((redis) => redis.stop()));
  }
}

/** Forwards bytes in their order, each so much later. */
async function delayingProxy(port) {
  const sockets = new Set();
  let isCut = false;
  const forward = (from, to) => {
    sockets.add(from);
    from.setNoDelay(true);
    from.on("data", (chunk) => setTimeout(() => !isCut && !to.destroyed && to.write(chunk), EACH_WAY_MS));
    from.on("error", () => undefined);
    from.on("close", () => {
      sockets.delete(from);
      to.destroy();
    });
  };
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    forward(client, upstream);
    forward(upstream, client);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `redis://127.0.0.1:${server.address().port}`,
    cut: (on) => {
      isCut = on;
      // What was on its way is lost for good: a client that waits would see it answered late.
      if (!on) for (const socket of sockets) socket.destroy();
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** One limiter a region, under load; region 0 reaches home by `cuttable`, if there is one. */
async function run({ stores, home, id, load, runMs, cuttable }) {
  const uses = { covered: [], local: [] };
  let statedShare = 0;
  const limiters = stores.map(({ url }, region) => {
    const globalStore = redisStore(region === 0 && cuttable ? cuttable.url : home, { deadlineMs: 1_000 });
    const store = stamping(redisStore(url, { deadlineMs: 10_000 }), (atMs, isLocal) =>
      (isLocal ? uses.local : uses.covered).push(atMs),
    );
    return createLimiter({ rules: [{ ...rule, id }], store, globalStore, region: `r${region}`, instances: 1 });
  });
  await Promise.all(limiters.map((limiter) => limiter.ready()));
  // Sixty limiters of one process load their scripts at once: they begin when each has heard all others.
  while (limiters.some((limiter) => limiter.regionStats().regions < REGIONS)) await sleep(100);
  const timers = cuttable ? CUT_MS.map((atMs, i) => setTimeout(() => cuttable.cut(i === 0), atMs)) : [];
  const sum = (of) => limiters.reduce((total, limiter) => total + of(limiter.regionStats()), 0);
  const startMs = Date.now();
  let startWaits = 0;
  const started = setTimeout(() => {
    startWaits = sum(({ waited }) => waited);
  }, WINDOW_MS);
  const asked = await drive({ runMs, load, isFixed: cuttable !== undefined }, async (region) => {
    const { degraded, checks } = await limiters[region].check({});
    if (degraded === "local") statedShare = Math.max(statedShare, checks[0].limit);
  });
  [...timers, started].forEach(clearTimeout);
  const waited = sum((stats) => stats.waited) - startWaits;
  const fetches = sum((stats) => stats.fetches);
  await Promise.all(limiters.map((limiter) => limiter.close()));
  const after = uses.covered.concat(uses.local).filter((atMs) => atMs >= startMs + WINDOW_MS);
  return {
    asked,
    over: Math.max(0, worstWindow(uses.covered) - LIMIT),
    utilisation: after.length / ((LIMIT * Math.min(1, load) * (runMs - WINDOW_MS)) / WINDOW_MS),
    // As the utilisation, after the first window; at the start every region waits for its first units.
    startWaits,
    waitedShare: waited / (asked * (1 - WINDOW_MS / runMs)),
    fetchesPerTerm: fetches / REGIONS / (runMs / TERM_MS),
    worstLocal: worstWindow(uses.local),
    statedShare,
    overBound: Math.max(0, worstWindow(uses.local) - statedShare),
  };
}

/** Hears of each use, at the time of the store that counted it. */
function stamping(store, used) {
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (name !== "decide") return typeof value === "function" ? value.bind(target) : value;
      return async (request) => {
        const reply = await target.decide(request);
        const [{ plan }] = request.checks;
        if (request.charge && reply.verdicts[0].charged) used(reply.nowMs, plan.policy.stored !== "pool");
        return reply;
      };
    },
  });
}

/** Poisson arrivals; the hottest region has the most, the others less and less; which is hottest moves on. */
async function drive({ runMs, load, isFixed }, ask) {
  const weights = Array.from({ length: REGIONS }, (_, i) => 1 / (i + 1));
  const total = weights.reduce((a, b) => a + b);
  const due = weights.map(() => 0);
  const pending = new Set();
  const startMs = performance.now();
  let asked = 0;
  for (let atMs = 0; atMs < runMs; ) {
    await sleep(TICK_MS);
    const nowMs = Math.min(runMs, performance.now() - startMs);
    const moved = isFixed ? 0 : 7 * Math.floor(nowMs / HOT_SPOT_MS);
    for (let region = 0; region < REGIONS; region++) {
      const rate = (load * LIMIT * (weights[(region + moved) % REGIONS] / total)) / WINDOW_MS;
      due[region] += rate * (nowMs - atMs);
      while (due[region] > 0) {
        due[region] += Math.log(1 - Math.random());
        asked++;
        const answer = ask(region).finally(() => pending.delete(answer));
        pending.add(answer);
      }
    }
    atMs = nowMs;
  }
  await Promise.all(pending);
  return asked;
}

function worstWindow(stamps) {
  const sorted = stamps.toSorted((a, b) => a - b);
  let first = 0;
  let worst = 0;
  for (let last = 0; last < sorted.length; last++) {
    while (sorted[first] <= sorted[last] - WINDOW_MS) first++;
    worst = Math.max(worst, last - first + 1);
  }
  return worst;
}

export function regionsBars({ overload, calm, cut }) {
  const atMost = (what, bound, measured) => ({ what, wanted: `at most ${bound}`, measured, met: measured <= bound });
  return [
    atMost("regions: 20 at twice the limit, uses beyond it in any window", 0, overload.over),
    {
      what: "regions: 20 at twice the limit, utilisation",
      wanted: "at least 0.97",
      measured: overload.utilisation,
      met: overload.utilisation >= 0.97,
    },
    atMost("regions: 20 at 0.8 of the limit, share of requests that wait for a round trip", 0.01, calm.waitedShare),
    atMost("regions: one cut off for 30 s under local, uses beyond the stated bound", 0, cut.overBound + cut.over),
  ];
}

export function printRegions({ overload, calm, cut }) {
  console.log(
    `\n${REGIONS} regions, ${LIMIT} in ${WINDOW_MS / 1_000} s, home ${2 * EACH_WAY_MS} ms away, a hot spot that moves`,
  );
  for (const [name, figures] of Object.entries({ "2 x the limit": overload, "0.8 of the limit": calm })) {
    const { asked, over, utilisation, waitedShare, startWaits, fetchesPerTerm } = figures;
    console.log(
      `  ${name.padEnd(22)}asked ${asked}, over ${over}, utilisation ${utilisation.toFixed(3)}, waited ${(100 * waitedShare).toFixed(2)} % (and ${startWaits} in the first window), fetches a region and term ${fetchesPerTerm.toFixed(2)}`,
    );
  }
  const { over, worstLocal, statedShare } = cut;
  console.log(
    `  ${"one cut off for 30 s".padEnd(22)}over ${over}; worst window by policy ${worstLocal} of the stated share ${statedShare}`,
  );
}
