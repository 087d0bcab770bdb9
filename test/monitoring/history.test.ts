/** What every history and every shared state must do, on each place that keeps one: this process, Redis, Sentinel, Redis Cluster. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { SharedState } from "../../packages/server/src/instance/shared-state.js";
import { createLog } from "../../packages/server/src/log.js";
import { type History, MOST_SERIES, OTHER_SERIES } from "../../packages/server/src/monitoring/history/history.js";
import { MemoryHistory } from "../../packages/server/src/monitoring/history/memory-history.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder, removeTempFolder } from "../harness/leash.js";
import { startCluster } from "../harness/redis-cluster.js";
import { redisBinary, startRedis } from "../harness/redis-server.js";
import { startServerProcess } from "../harness/server-process.js";
import { connected, type KeptState, openMemoryState, openRedisState } from "./kept-state.js";

const silent = createLog("silent");
const everything = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };
/** Whole quarters, so that a test's seconds never straddle one. */
const now = (): number => Math.floor(Date.now() / 900_000) * 900_000;

interface Place {
  open(): Promise<KeptState>;
  end(): Promise<void>;
}

const places: Record<string, () => Promise<Place>> = {
  "in this process": async () => {
    const dataFolder = makeTempFolder("history");
    return {
      open: () => openMemoryState({ dataFolder, log: silent }),
      end: async () => removeTempFolder(dataFolder),
    };
  },
  "in Redis": async () => {
    const redis = await startRedis();
    return { open: () => connected(openRedisState(redis.url)), end: () => redis.stop() };
  },
  "in Redis behind Sentinel": async () => {
    const master = await startRedis();
    const folder = makeTempFolder("sentinel");
    const port = await freePort();
    const file = join(folder, "sentinel.conf");
    const lines = [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${folder}`,
      `sentinel monitor main 127.0.0.1 ${master.port} 1`,
    ];
    writeFileSync(file, lines.join("\n"));
    const sentinel = await startServerProcess({
      command: redisBinary(),
      args: [file, "--sentinel"],
      env: {},
      readyLine: /monitor master main/,
    });
    return {
      open: () => connected(openRedisState(`redis+sentinel://127.0.0.1:${port}/main`)),
      async end() {
        await sentinel.stop();
        await master.stop();
        removeTempFolder(folder);
      },
    };
  },
  "in Redis Cluster": async () => {
    const cluster = await startCluster();
    return { open: () => connected(openRedisState(cluster.url)), end: () => cluster.stop() };
  },
};

describe.each(Object.entries(places))("a history and a shared state %s", (where, makePlace) => {
  const missing = where === "in this process" ? undefined : whyMissing("redis");
  const made = missing ? undefined : makePlace();
  afterAll(async () => (await made)?.end());
  const withState = async (work: (state: KeptState) => Promise<void>): Promise<void> => {
    const state = await (await made!).open();
    try {
      await work(state);
    } finally {
      await state.close();
    }
  };
  const withHistory = (work: (history: History) => Promise<void>): Promise<void> =>
    withState(({ history }) => work(history));
  const withShared = (work: (shared: SharedState) => Promise<void>): Promise<void> =>
    withState(({ shared }) => work(shared));

  test.skipIf(missing)("adds to the second, its minute and its quarter hour", () =>
    withHistory(async (history) => {
      const atMs = now() - 900_000 + 61_500;
      await history.add(atMs, [{ series: "total", counts: { allowed: 2, latency04: 2 } }]);
      await history.add(atMs + 1_000, [
        { series: "total", counts: { allowed: 1, refused: 5, latency13: 6 } },
        { series: "a-rule", counts: { allowed: 1, refused: 5, use09: 1, candidateRefused: 2 } },
      ]);
      const minutes = await history.read("minute", everything);
      expect(minutes.get("total")).toEqual([
        { atMs: atMs - 1_500, counts: { allowed: 3, latency04: 2, refused: 5, latency13: 6 } },
      ]);
      const quarters = await history.read("quarter", { fromMs: atMs - 61_500, toMs: atMs });
      expect(quarters.get("a-rule")).toEqual([
        { atMs: atMs - 61_500, counts: { allowed: 1, refused: 5, use09: 1, candidateRefused: 2 } },
      ]);
      expect(history.lost).toBe(0);
    }),
  );

  test.skipIf(missing)("reads steps of a range, oldest first, its start included and its end not", () =>
    withHistory(async (history) => {
      const firstMs = Math.floor(Date.now() / 1_000) * 1_000 - 20_000;
      for (const offset of [2_000, 0, 1_000, 3_000]) {
        await history.add(firstMs + offset + 7, [{ series: "ranged", counts: { allowed: 1 + offset } }]);
      }
      const read = await history.read("second", { fromMs: firstMs + 1_000, toMs: firstMs + 3_000 });
      expect(read.get("ranged")).toEqual([
        { atMs: firstMs + 1_000, counts: { allowed: 1_001 } },
        { atMs: firstMs + 2_000, counts: { allowed: 2_001 } },
      ]);
    }),
  );

  test.skipIf(missing)("holds a bounded number of series a step, and the total whatever came before", () =>
    withHistory(async (history) => {
      const atMs = now() - 3 * 900_000;
      const rules = Array.from({ length: MOST_SERIES + 500 }, (_, i) => ({ series: `r${i}`, counts: { allowed: 1 } }));
      await history.add(atMs, rules);
      await history.add(atMs, [{ series: "total", counts: { allowed: 9 } }]);
      await history.add(atMs, [{ series: "r3", counts: { allowed: 1 } }]);
      const read = await history.read("quarter", { fromMs: atMs, toMs: atMs + 1 });
      expect(read.size).toBeLessThanOrEqual(MOST_SERIES + 2);
      expect(read.get("total")?.[0]?.counts).toEqual({ allowed: 9 });
      expect(read.get("r3")?.[0]?.counts).toEqual({ allowed: 2 });
      expect(read.get(OTHER_SERIES)?.[0]?.counts).toEqual({ allowed: 500 });
    }),
  );

  test.skipIf(missing)("counts the time that was counted once, however many instances report it", () =>
    withHistory(async (history) => {
      const atMs = Math.floor(Date.now() / 1_000) * 1_000 - 40_000;
      await history.add(atMs, [{ series: "total", counts: { allowed: 3 } }], 1);
      await history.add(atMs + 400, [{ series: "total", counts: { allowed: 4 } }], 1);
      await history.add(atMs + 1_000, [], 1);
      // Two seconds as one, of an instance that was late.
      await history.add(atMs + 3_000, [{ series: "total", counts: { allowed: 8 } }], 2);
      for (const step of ["minute", "quarter"] as const) {
        const points = (await history.read(step, everything)).get("total") ?? [];
        expect(points.reduce((sum, { counts: { seconds = 0 } }) => sum + seconds, 0)).toBe(4);
      }
      const seconds = await history.read("second", { fromMs: atMs, toMs: atMs + 1 });
      expect(seconds.get("total")?.[0]?.counts).toEqual({ seconds: 1, allowed: 7 });
    }),
  );

  test.skipIf(missing)("swaps a text only from what it is, and finds texts by the beginning of their names", () =>
    withShared(async (shared) => {
      const keepMs = 60_000;
      expect(await shared.read("lock")).toBeUndefined();
      expect(await shared.swap("lock", { was: undefined, now: "mine", keepMs })).toBe(true);
      expect(await shared.swap("lock", { was: undefined, now: "yours", keepMs })).toBe(false);
      expect(await shared.swap("lock", { was: "other", now: "yours", keepMs })).toBe(false);
      expect(await shared.swap("lock", { was: "mine", now: "", keepMs })).toBe(true);
      expect(await shared.swap("lock", { was: "", now: "yours", keepMs })).toBe(true);
      expect(await shared.read("lock")).toBe("yours");
      for (const name of ["in:a", "in:é", "i", "io"])
        await shared.swap(name, { was: undefined, now: `of ${name}`, keepMs });
      const found = await shared.readAll("in:");
      expect(Object.fromEntries(found)).toEqual({ "in:a": "of in:a", "in:é": "of in:é" });
      expect((await shared.readAll("nobody")).size).toBe(0);
    }),
  );

  test.skipIf(missing)("forgets a text at its end, and its name can be taken again", () =>
    withShared(async (shared) => {
      await shared.swap("brief:1", { was: undefined, now: "here", keepMs: 30 });
      await new Promise((resolve) => setTimeout(resolve, 120));
      expect(await shared.read("brief:1")).toBeUndefined();
      expect((await shared.readAll("brief:")).size).toBe(0);
      expect(await shared.swap("brief:1", { was: undefined, now: "again", keepMs: 60_000 })).toBe(true);
      expect(Object.fromEntries(await shared.readAll("brief:"))).toEqual({ "brief:1": "again" });
    }),
  );

  test.skipIf(missing)("is there again after a restart of the instance", async () => {
    const atMs = now() - 2 * 900_000;
    await withState(async ({ history, shared }) => {
      await history.add(atMs, [{ series: "kept", counts: { refused: 4 } }]);
      await shared.swap("kept-text", { was: undefined, now: "with\nlines", keepMs: 60_000 });
    });
    await withState(async ({ history, shared }) => {
      expect((await history.read("quarter", everything)).get("kept")).toEqual([{ atMs, counts: { refused: 4 } }]);
      expect(await shared.read("kept-text")).toBe("with\nlines");
    });
  });
});

test("a damaged snapshot is told in the log, and the history begins anew", async () => {
  const dataFolder = makeTempFolder("history");
  const told: string[] = [];
  const log = { ...silent, warn: (message: string) => void told.push(message) };
  try {
    const history = await MemoryHistory.open({ dataFolder, log });
    await history.add(Date.now(), [{ series: "total", counts: { allowed: 1 } }]);
    await history.close();
    const file = join(dataFolder, "monitoring-history");
    const whole = readFileSync(file, "utf8");
    const lines = whole.split("\n");
    const damages = {
      "cut off between lines": `${lines.slice(0, 3).join("\n")}\n`,
      "without one of its lines": lines.filter((_, i) => i !== 2).join("\n"),
      "cut off within a line": whole.slice(0, -20),
      "not ours": '{"layout":99}\n{"end":0}\n',
      "no text": "\u0000\u0001\u0002",
    };
    for (const [damage, text] of Object.entries(damages)) {
      told.length = 0;
      writeFileSync(file, text);
      const damaged = await MemoryHistory.open({ dataFolder, log });
      expect((await damaged.read("quarter", everything)).size, damage).toBe(0);
      expect(told, damage).toEqual(["the monitoring history cannot be read and begins anew"]);
    }
  } finally {
    removeTempFolder(dataFolder);
  }
});

test.skipIf(whyMissing("redis"))("without Redis, what is added is lost and counted, and a read fails", async () => {
  const redis = await startRedis();
  const state = await connected(openRedisState(redis.url));
  const { history } = state;
  try {
    redis.pause();
    await history.add(Date.now(), [{ series: "total", counts: { allowed: 1 } }]);
    await expect(history.read("second", { fromMs: Date.now() - 2_000, toMs: Date.now() })).rejects.toThrow();
    expect(history.lost).toBe(1);
    redis.resume();
    await connected(state);
    await history.add(Date.now(), [{ series: "total", counts: { allowed: 1 } }]);
    expect(history.lost).toBe(1);
  } finally {
    redis.resume();
    await state.close();
    await redis.stop();
  }
});

test.skipIf(whyMissing("redis"))("a Redis that hangs costs one deadline, however many rules were counted", async () => {
  const redis = await startRedis();
  const state = await connected(openRedisState(redis.url));
  const { history } = state;
  const add = (rules: number): Promise<void> =>
    history.add(
      Date.now(),
      Array.from({ length: rules }, (_, i) => ({ series: `rule-${i}`, counts: { allowed: 1 } })),
    );
  const addSingly = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await add(1);
  };
  try {
    redis.pause();
    const singly = addSingly(4).then(() => "four deadlines in a row");
    const together = add(1_000).then(() => "a thousand rules");
    expect(await Promise.race([singly, together])).toBe("a thousand rules");
    await singly;
    expect(history.lost).toBe(4 + Math.ceil(1_000 / 64));
  } finally {
    redis.resume();
    await state.close();
    await redis.stop();
  }
});

test.skipIf(whyMissing("redis"))("every key of the history in Redis expires", async () => {
  const redis = await startRedis();
  const state = await connected(openRedisState(redis.url));
  const { history } = state;
  try {
    await history.add(Date.now(), [{ series: "total", counts: { allowed: 1 } }]);
    await state.shared.swap("a:1", { was: undefined, now: "text", keepMs: 60_000 });
    const keys = (await redis.cli("KEYS", "*")).split("\n");
    expect(keys.length).toBe(5);
    for (const key of keys) expect(Number(await redis.cli("PTTL", key)), key).toBeGreaterThan(0);
  } finally {
    await state.close();
    await redis.stop();
  }
});

test("texts that an earlier version kept in the history's file are still there, and so are its counts", async () => {
  const dataFolder = makeTempFolder("history");
  try {
    const atMs = now() - 900_000;
    const lines = [
      { layout: 1 },
      { step: "quarter", atMs, series: { total: "a=3" } },
      { name: "alert:kept:1", text: "{}", endsAtMs: Date.now() + 60_000 },
      { end: 2 },
    ];
    writeFileSync(join(dataFolder, "monitoring-history"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const { history, shared } = await openMemoryState({ dataFolder, log: silent });
    expect((await history.read("quarter", everything)).get("total")).toEqual([{ atMs, counts: { allowed: 3 } }]);
    expect(await shared.read("alert:kept:1")).toBe("{}");
  } finally {
    removeTempFolder(dataFolder);
  }
});
