/**
 * Work that would hold up every check, on a thread of its own: one task, one answer, then the thread ends.
 * In: the built file that runs the task, and its input. Out: what the thread posts. A thread that ends without an answer, or takes too long,
 * rejects.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type TransferListItem, Worker } from "node:worker_threads";

/** The largest input that is accepted takes about ten seconds. */
const PATIENCE_MS = 60_000;
const MOST_MEMORY_MB = 2_048;

export async function runInThread<Task, Answer>(options: {
  /** Beside the caller's own file, built. */
  readonly file: URL;
  readonly task: Task;
  readonly transfer?: readonly TransferListItem[];
  /** In tests of the sources there is nothing built to start: then this does the task here. */
  readonly otherwise: (task: Task) => Promise<Answer>;
}): Promise<Answer> {
  const { task, transfer = [], otherwise } = options;
  const file = fileURLToPath(options.file);
  if (!existsSync(file)) return await otherwise(task);
  const worker = new Worker(file, {
    workerData: task,
    transferList: [...transfer],
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
    stderr: true,
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Answer>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`could not be read within ${PATIENCE_MS} ms`)), PATIENCE_MS);
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("the thread that read it ended without an answer")));
    });
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
