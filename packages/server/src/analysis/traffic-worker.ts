/**
 * Runs `try-on-traffic.ts` on a worker thread: a replay takes seconds, during which the main thread could not answer checks.
 * One task at a time per instance; the thread is bounded in memory, and terminated if it takes too long.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { type Mistake, SluiceError } from "sluice";
import { ServiceError } from "../errors.js";
import {
  type SuggestionsView,
  type SuggestTask,
  suggestOnTraffic,
  type TryTask,
  type TryView,
  tryOnTraffic,
} from "./try-on-traffic.js";

export type TrafficTask = ({ readonly kind: "try" } & TryTask) | ({ readonly kind: "suggest" } & SuggestTask);

/** Errors lose their class between threads. */
type Outcome = { readonly view: unknown } | { readonly mistakes: readonly Mistake[]; readonly message: string };

/** Longer than the bounds on reading: ten thousand rules are compiled first. */
const PATIENCE_MS = 60_000;
const MOST_MEMORY_MB = 1_024;

export class TrafficWorker {
  #isBusy = false;

  async tryOnTraffic(task: TryTask): Promise<TryView> {
    return (await this.#run({ kind: "try", ...task })) as TryView;
  }

  async suggest(task: SuggestTask): Promise<SuggestionsView> {
    return (await this.#run({ kind: "suggest", ...task })) as SuggestionsView;
  }

  async #run(task: TrafficTask): Promise<unknown> {
    if (this.#isBusy) throw new ServiceError("too-busy", "another draft is being tried on traffic here");
    this.#isBusy = true;
    try {
      const outcome = await inThread(task);
      if ("view" in outcome) return outcome.view;
      throw new SluiceError("invalid-rules", outcome.message, { mistakes: outcome.mistakes });
    } finally {
      this.#isBusy = false;
    }
  }
}

async function inThread(task: TrafficTask): Promise<Outcome> {
  const thread = fileURLToPath(new URL("./traffic-worker-thread.js", import.meta.url));
  // When testing from source there is no built thread to start.
  if (!existsSync(thread)) return await runTrafficTask(task);
  const worker = new Worker(thread, {
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
    stderr: true,
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Outcome>((resolve, reject) => {
      const gaveUp = new ServiceError("too-busy", `the traffic could not be read within ${PATIENCE_MS / 1_000} s`);
      timer = setTimeout(() => reject(gaveUp), PATIENCE_MS);
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("the thread that read the traffic ended without an answer")));
    });
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

export async function runTrafficTask(task: TrafficTask): Promise<Outcome> {
  try {
    return { view: task.kind === "try" ? await tryOnTraffic(task) : await suggestOnTraffic(task) };
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== "invalid-rules") throw error;
    return { mistakes: error.mistakes, message: error.message };
  }
}
