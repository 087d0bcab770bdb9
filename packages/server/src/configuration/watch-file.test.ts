import { createHook } from "node:async_hooks";
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { watchFile } from "./watch-file.js";

/** The poll is too rare to help: only events of the folder are seen. */
const pollMs = 3_600_000;

function someFile(): { file: string; folder: string } {
  const folder = mkdtempSync(join(tmpdir(), "sluice-watch-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "rules.yaml");
  writeFileSync(file, "rules: []\n");
  return { file, folder };
}

test("a file that is replaced is told of, once for all steps of a change", async () => {
  const { file, folder } = someFile();
  let changes = 0;
  const changed = new Promise<void>((resolve) => {
    const onChange = () => {
      changes++;
      resolve();
    };
    onTestFinished(watchFile(file, { pollMs, onChange }));
  });
  await wait(100);
  const next = join(folder, "next.yaml");
  writeFileSync(next, "rules: [1]\n");
  renameSync(next, file);
  await changed;
  expect(changes).toBe(1);
});

test("a folder in which other files are written all the time does not cost a look at each write", async () => {
  const { file, folder } = someFile();
  let [changes, looks] = [0, 0];
  const hook = createHook({ init: (_id, type) => void (type === "FSREQPROMISE" && looks++) });
  onTestFinished(watchFile(file, { pollMs, onChange: () => changes++ }));
  await wait(100);
  hook.enable();
  onTestFinished(() => void hook.disable());
  const ROUNDS = 40;
  for (let round = 0; round < ROUNDS; round++) {
    // Two files in turn: the system merges events of one file that follow each other.
    for (let i = 0; i < 50; i++) appendFileSync(join(folder, `${i % 2}.log`), "a line\n");
    // Lets events in.
    await wait(1);
  }
  await wait(100);
  expect(changes).toBe(0);
  // A look is asked for by the first event of a round, if none is due: at most one in each, and one behind the last.
  expect(looks).toBeLessThanOrEqual(ROUNDS + 1);
  expect(looks).toBeGreaterThan(0);
});
