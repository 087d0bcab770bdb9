/**
 * Reads a limit configuration and builds the lookup tree without blocking the event loop: YAML and protobuf are parsed and checked on a
 * worker thread, and the tree is built in slices. The current limits stay in force until the new ones are complete.
 * In: a folder, or a control plane's resources. Out: the tree; rejects with the mistakes.
 */
import { runInSlices } from "sluice/internal";
import { runInThread } from "../../threads/run-in-thread.js";
import { bytesIn, type FolderOptions, readConfigFolder } from "./config-folder.js";
import type { TreeOptions } from "./config-tree.js";
import type { Domain } from "./descriptor-config.js";
import { readingLines, writeLines } from "./limit-lines.js";
import { buildingLimitTree, type LimitTree } from "./limit-tree.js";
import type { DiscoveryResponse } from "./xds/xds-messages.js";

export type LimitTask =
  | { readonly folder: FolderOptions }
  | { readonly resources: DiscoveryResponse["resources"]; readonly options: TreeOptions };

export type LimitAnswer =
  | { readonly mistakes: string }
  | { readonly chunks: readonly Uint8Array[]; readonly leftOut: readonly string[] };

interface ReadLimits {
  readonly tree: LimitTree;
  /** Files of the folder that were skipped. */
  readonly leftOut: readonly string[];
}

/** Smaller configurations take some milliseconds, less than starting a thread. */
const SMALL_BYTES = 64 * 1_024;

export async function readLimits(task: LimitTask): Promise<ReadLimits> {
  const { domains, leftOut } = bytesOf(task) <= SMALL_BYTES ? await readDomains(task) : await readElsewhere(task);
  const options = "folder" in task ? task.folder : task.options;
  return { tree: await runInSlices(buildingLimitTree(domains, options)), leftOut };
}

function bytesOf(task: LimitTask): number {
  if ("folder" in task) return bytesIn(task.folder.folder);
  return task.resources.reduce((sum, { value }) => sum + value.length, 0);
}

async function readElsewhere(task: LimitTask): Promise<{ domains: Domain[]; leftOut: readonly string[] }> {
  const file = new URL("./limit-worker-thread.js", import.meta.url);
  const answer = await runInThread<LimitTask, LimitAnswer>({ file, task, otherwise: runLimitTask });
  if ("mistakes" in answer) throw new Error(answer.mistakes);
  return { domains: await runInSlices(readingLines(answer.chunks)), leftOut: answer.leftOut };
}

/** Runs on the thread. Returns errors as text, because an error loses everything else between threads. */
export async function runLimitTask(task: LimitTask): Promise<LimitAnswer> {
  try {
    const { domains, leftOut } = await readDomains(task);
    return { chunks: writeLines(domains), leftOut };
  } catch (error) {
    return { mistakes: (error as Error).message };
  }
}

/** Throws with every mistake, one per line. */
async function readDomains(task: LimitTask): Promise<{ domains: Domain[]; leftOut: readonly string[] }> {
  if ("folder" in task) return readConfigFolder(task.folder);
  // Loaded only if limits come from a control plane.
  const { readResourceDomains } = await import("./xds/read-resources.js");
  return { domains: readResourceDomains(task.resources, task.options), leftOut: [] };
}
