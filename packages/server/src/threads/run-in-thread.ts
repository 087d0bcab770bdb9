/**
 * Runs a task on a worker thread, because it would block every check on the main thread.
 * In: the built file of the thread (`answer-tasks.ts`) and the task. Out: the thread's answer. A thread that ends without an answer, or takes
 * too long, rejects.
 *
 * The last thread of each file is kept for a few seconds: a new one loads its code and compiles it from scratch, on V8's own threads, which
 * have normal priority. For a document of ten thousand rules, that was half of the processor time.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type TransferListItem, Worker } from "node:worker_threads";
import { ServiceError } from "../errors.js";

/** The largest input that is accepted takes about ten seconds. */
const PATIENCE_MS = 60_000;
const MOST_MEMORY_MB = 2_048;
/** After a large task a thread may hold some hundred megabytes, so it is not kept for long. */
const KEPT_MS = 5_000;

interface Kept {
  readonly worker: Worker;
  readonly timer: NodeJS.Timeout;
}

/** By file. */
const kept = new Map<string, Kept>();

export async function runInThread<Task, Answer>(options: {
  /** Beside the caller's own file, built. */
  readonly file: URL;
  readonly task: Task;
  readonly transfer?: readonly TransferListItem[];
  readonly mostMemoryMb?: number;
  /** When testing from source, there is no built thread to start: runs the task on the caller's thread. */
  readonly otherwise: (task: Task) => Promise<Answer>;
}): Promise<Answer> {
  const { task, transfer = [], mostMemoryMb = MOST_MEMORY_MB, otherwise } = options;
  const file = fileURLToPath(options.file);
  if (!existsSync(file)) return await otherwise(task);
  const worker = takeKept(file) ?? start(file, mostMemoryMb);
  try {
    const answer = await answerOf<Answer>(worker, () => worker.postMessage(task, transfer));
    keep(file, worker);
    return answer;
  } catch (error) {
    await worker.terminate();
    throw error;
  }
}

function start(file: string, mostMemoryMb: number): Worker {
  const worker = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: mostMemoryMb }, stderr: true });
  // A thread that fails while it is kept must not end the process. A task listens for itself.
  return worker.on("error", () => forget(file, worker)).on("exit", () => forget(file, worker));
}

function answerOf<Answer>(worker: Worker, ask: () => void): Promise<Answer> {
  return new Promise<Answer>((resolve, reject) => {
    const settle = (how: () => void): void => {
      clearTimeout(timer);
      // One by one: Node.js listens on a worker, too.
      worker.off("message", onAnswer).off("error", onError).off("exit", onExit);
      how();
    };
    const onAnswer = (answer: Answer): void => settle(() => resolve(answer));
    const onError = (error: Error): void => settle(() => reject(error));
    const onExit = (): void => settle(() => reject(new Error("the thread ended without an answer")));
    const timer = setTimeout(() => settle(() => reject(tookTooLong())), PATIENCE_MS);
    worker.on("message", onAnswer).on("error", onError).on("exit", onExit);
    ask();
  });
}

function takeKept(file: string): Worker | undefined {
  const worker = kept.get(file)?.worker;
  if (worker !== undefined) forget(file, worker);
  worker?.ref();
  return worker;
}

function keep(file: string, worker: Worker): void {
  if (kept.has(file)) {
    void worker.terminate();
    return;
  }
  const timer = setTimeout(() => {
    forget(file, worker);
    void worker.terminate();
  }, KEPT_MS).unref();
  kept.set(file, { worker, timer });
  worker.unref();
}

function forget(file: string, worker: Worker): void {
  const found = kept.get(file);
  if (found?.worker !== worker) return;
  clearTimeout(found.timer);
  kept.delete(file);
}

function tookTooLong(): ServiceError {
  return new ServiceError("too-busy", `the task took longer than ${PATIENCE_MS / 1_000} s on its thread`);
}
