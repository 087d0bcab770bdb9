import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { runInThread } from "./run-in-thread.js";

function threadOf(name: string, onTask: string): URL {
  const file = join(tmpdir(), `sluice-${process.pid}-${name}.mjs`);
  writeFileSync(
    file,
    `import { parentPort, threadId } from "node:worker_threads";\nparentPort.on("message", (task) => { ${onTask} });`,
  );
  return pathToFileURL(file);
}

const otherwise = async (): Promise<string> => "here";

test("a task is done on a thread, and its answer comes back", async () => {
  const file = threadOf("answers", 'parentPort.postMessage("thread " + task);');
  expect(await runInThread({ file, task: 7, otherwise })).toBe("thread 7");
});

test("where nothing is built, it is done here", async () => {
  expect(await runInThread({ file: new URL("./no-such-thread.js", import.meta.url), task: 7, otherwise })).toBe("here");
});

test("a thread that throws, or ends without an answer, rejects, and the next task has another", async () => {
  const file = threadOf(
    "fails",
    'if (task === "throw") throw new Error("no way"); if (task === "end") process.exit(0); parentPort.postMessage(threadId);',
  );
  const ask = (task: string) => runInThread<string, unknown>({ file, task, otherwise });
  const first = await ask("id");
  await expect(ask("throw")).rejects.toThrow("no way");
  const second = await ask("id");
  expect(second).not.toBe(first);
  await expect(ask("end")).rejects.toThrow("ended without an answer");
  expect(await ask("id")).not.toBe(second);
});

test("tasks one after another share a thread, tasks at once do not", async () => {
  const file = threadOf("counts", "setTimeout(() => parentPort.postMessage(threadId), 20);");
  const ask = () => runInThread<number, unknown>({ file, task: 0, otherwise });
  const alone = await ask();
  expect(await ask()).toBe(alone);
  const both = await Promise.all([ask(), ask()]);
  expect(new Set(both).size).toBe(2);
  expect(both).toContain(await ask());
});

test("a kept thread that fails by itself is forgotten", async () => {
  const file = threadOf(
    "fails-later",
    'parentPort.postMessage(threadId); setTimeout(() => { throw new Error("later"); }, 20);',
  );
  const ask = () => runInThread<number, unknown>({ file, task: 0, otherwise });
  const first = await ask();
  // A task that meets the failing thread rejects; those before it are answered by the same one.
  await expect.poll(() => ask().catch(() => first), { timeout: 30_000 }).not.toBe(first);
});

test("transferred bytes move to the thread", async () => {
  const file = threadOf("measures", "parentPort.postMessage(task.byteLength);");
  const task = new Uint8Array(9);
  const answer = runInThread<Uint8Array, unknown>({ file, task, transfer: [task.buffer], otherwise });
  expect(task.byteLength).toBe(0);
  expect(await answer).toBe(9);
});
