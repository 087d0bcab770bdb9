import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { runInThread } from "./run-in-thread.js";

function threadOf(name: string, source: string): URL {
  const file = join(tmpdir(), `sluice-${process.pid}-${name}.mjs`);
  writeFileSync(file, `import { parentPort, workerData } from "node:worker_threads";\n${source}`);
  return pathToFileURL(file);
}

const otherwise = async (): Promise<string> => "here";

test("a task is done on a thread, and its answer comes back", async () => {
  const file = threadOf("answers", 'parentPort.postMessage("thread " + workerData);');
  expect(await runInThread({ file, task: 7, otherwise })).toBe("thread 7");
});

test("where nothing is built, it is done here", async () => {
  expect(await runInThread({ file: new URL("./no-such-thread.js", import.meta.url), task: 7, otherwise })).toBe("here");
});

test("a thread that throws, or ends without an answer, rejects", async () => {
  const throws = threadOf("throws", 'throw new Error("no way");');
  await expect(runInThread({ file: throws, task: 7, otherwise })).rejects.toThrow("no way");
  const silent = threadOf("silent", "process.exit(0);");
  await expect(runInThread({ file: silent, task: 7, otherwise })).rejects.toThrow("ended without an answer");
});
