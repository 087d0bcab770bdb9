/**
 * Runs `try-on-traffic.ts` on a worker thread: a replay takes seconds, during which the main thread could not answer checks.
 * One task at a time per instance; the thread is bounded in memory, and terminated if it takes too long.
 */
import { type Mistake, SluiceError } from "sluice";
import { ServiceError } from "../errors.js";
import { runInThread } from "../threads/run-in-thread.js";
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
export type TrafficOutcome =
  | { readonly view: unknown }
  | { readonly mistakes: readonly Mistake[]; readonly message: string };

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

async function inThread(task: TrafficTask): Promise<TrafficOutcome> {
  const file = new URL("./traffic-worker-thread.js", import.meta.url);
  return await runInThread({ file, task, mostMemoryMb: MOST_MEMORY_MB, otherwise: runTrafficTask });
}

export async function runTrafficTask(task: TrafficTask): Promise<TrafficOutcome> {
  try {
    return { view: task.kind === "try" ? await tryOnTraffic(task) : await suggestOnTraffic(task) };
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== "invalid-rules") throw error;
    return { mistakes: error.mistakes, message: error.message };
  }
}
