/** The folder of Envoy's limits while it is replaced: what comes in force was there at one moment, whole. */
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import type { LimitTree } from "../../packages/server/src/enforcement/envoy/limit-tree.js";
import { watchConfigFolder } from "../../packages/server/src/enforcement/envoy/watch-folder.js";
import { createLog } from "../../packages/server/src/log.js";
import { makeTempFolder } from "../harness/leash.js";

const FILES = 100;
const domain = (name: string, limit: number): string =>
  `domain: ${name}\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: ${limit} } }]\n`;
const limitsOf = (tree: LimitTree): number[] => [...new Set(tree.limits.map(({ limit }) => limit.requestsPerUnit))];

/**
 * A mounted ConfigMap as Kubernetes renews it: a new folder, a swapped link, the old folder removed. All files of a generation have the
 * same limit. In a thread of its own, for the one that reads does so without pause.
 */
const kubelet = `
const { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } = require("node:fs");
const { parentPort, workerData: { folder, files, flag } } = require("node:worker_threads");
const ended = new Int32Array(flag);
for (let generation = 1; Atomics.load(ended, 0) === 0; generation++) {
  mkdirSync(folder + "/.." + generation);
  for (let i = 0; i < files; i++)
    writeFileSync(folder + "/.." + generation + "/d" + i + ".yaml",
      "domain: d" + i + "\\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: " + generation + " } }]\\n");
  symlinkSync(".." + generation, folder + "/..tmp");
  renameSync(folder + "/..tmp", folder + "/..data");
  if (generation > 1) rmSync(folder + "/.." + (generation - 1), { recursive: true });
  else {
    for (let i = 0; i < files; i++) symlinkSync("..data/d" + i + ".yaml", folder + "/d" + i + ".yaml");
    parentPort.postMessage("mounted");
  }
  Atomics.wait(ended, 0, 0, 100 + (generation % 7) * 30);
}
`;

test("a mounted ConfigMap that is swapped while it is read never comes in force by halves", async () => {
  const folder = makeTempFolder("config-map");
  const flag = new SharedArrayBuffer(4);
  const worker = new Worker(kubelet, { eval: true, workerData: { folder, files: FILES, flag } });
  await once(worker, "message");
  const seen: number[][] = [];
  let watched = watch(folder, (tree) => void seen.push(limitsOf(tree)));
  // A start in the midst of a swap may find mistakes, and be repeated by whoever supervises it.
  while (watched === undefined) watched = watch(folder, (tree) => void seen.push(limitsOf(tree)));
  await expect.poll(() => seen.length, { timeout: 60_000 }).toBeGreaterThanOrEqual(6);
  Atomics.store(new Int32Array(flag), 0, 1);
  Atomics.notify(new Int32Array(flag), 0);
  await once(worker, "exit");
  watched.close();
  expect(seen.filter((limits) => limits.length !== 1)).toEqual([]);
});

function watch(folder: string, onChange: (tree: LimitTree) => void): ReturnType<typeof watchConfigFolder> | undefined {
  try {
    return watchConfigFolder({ folder, merge: false, log: createLog("silent"), onReload: () => undefined, onChange });
  } catch {
    return undefined;
  }
}

test("a sub-folder that vanishes and comes back, by a rename: its limits stay until it is settled", async () => {
  const folder = makeTempFolder("folder");
  mkdirSync(join(folder, "sub"));
  writeFileSync(join(folder, "sub", "a.yaml"), domain("a", 1));
  const trees: LimitTree[] = [];
  const watched = watchConfigFolder({
    folder,
    merge: false,
    log: createLog("silent"),
    onReload: () => undefined,
    onChange: (tree) => void trees.push(tree),
  });
  renameSync(join(folder, "sub"), join(folder, "moved"));
  await expect.poll(() => trees.length, { timeout: 20_000 }).toBe(1);
  expect(trees[0]!.limits.map(({ domain: name }) => name)).toEqual(["a"]);
  watched.close();
});

/** Root may read every file: then another user does. */
const NOBODY = 65_534;

test("a file that cannot be read is read once it can", async () => {
  const folder = makeTempFolder("folder");
  writeFileSync(join(folder, "a.yaml"), domain("a", 1));
  const isRoot = process.geteuid!() === 0;
  if (isRoot) {
    chownSync(folder, NOBODY, NOBODY);
    process.seteuid!(NOBODY);
  }
  onTestFinished(() => {
    if (isRoot) process.seteuid!(0);
  });
  const outcomes: string[] = [];
  const trees: LimitTree[] = [];
  const watched = watchConfigFolder({
    folder,
    merge: false,
    log: createLog("silent"),
    onReload: (outcome) => void outcomes.push(outcome),
    onChange: (tree) => void trees.push(tree),
  });
  writeFileSync(join(folder, "b.yaml"), domain("b", 1), { mode: 0 });
  await expect.poll(() => outcomes, { timeout: 20_000 }).toContain("failed");
  chmodSync(join(folder, "b.yaml"), 0o644);
  await expect.poll(() => trees.length, { timeout: 20_000 }).toBe(1);
  watched.close();
});
