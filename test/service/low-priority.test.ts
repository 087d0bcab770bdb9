/** A thread that reads a large body goes behind the one that answers checks, on a system that knows priorities of threads. */
import { getPriority } from "node:os";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";

const built = new URL("../../packages/server/dist/threads/low-priority.js", import.meta.url);

test.runIf(process.platform === "linux")("a thread lowers its own priority, and not the process's", async () => {
  const before = getPriority(process.pid);
  const code = `
    const { parentPort } = require("node:worker_threads");
    const tid = Number(require("node:fs").readlinkSync("/proc/thread-self").split("/").at(-1));
    import(${JSON.stringify(built.href)}).then(({ lowerPriority }) => {
      const isLowered = lowerPriority();
      parentPort.postMessage({ isLowered, priority: require("node:os").getPriority(tid) });
    });`;
  const worker = new Worker(code, { eval: true });
  try {
    const answer = await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    expect(answer).toEqual({ isLowered: true, priority: Math.max(10, before) });
    expect(getPriority(process.pid)).toBe(before);
  } finally {
    await worker.terminate();
  }
});
