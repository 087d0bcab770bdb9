/**
 * Reads a rule file on a thread of its own. YAML is read at about a megabyte a second; on the thread that decides requests, a file
 * of some thousand rules would hold up every check for as long.
 * In: the text. Out: the document as our own text, which is read in slices, or its mistakes with their lines.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { validateRules } from "sluice";
import { writeDocument } from "./document-text.js";
import { Pace } from "./pace.js";
import { type PlacedMistake, readRuleFile } from "./rule-file.js";

export type ReadApart = { readonly document: string } | { readonly mistakes: readonly PlacedMistake[] };

/** The largest file that is accepted takes about ten seconds. */
const PATIENCE_MS = 60_000;
const MOST_MEMORY_MB = 2_048;

export async function readApart(text: string): Promise<ReadApart> {
  const thread = fileURLToPath(new URL("./rule-file-thread.js", import.meta.url));
  // In tests of the sources there is nothing built to start.
  if (!existsSync(thread)) return await readAndValidate(text);
  const worker = new Worker(thread, {
    workerData: text,
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
    stderr: true,
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<ReadApart>((resolve, reject) => {
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

export async function readAndValidate(text: string): Promise<ReadApart> {
  const read = readRuleFile(text);
  if ("mistakes" in read) return read;
  const outcome = validateRules(read.document);
  if ("mistakes" in outcome) return { mistakes: read.place(outcome.mistakes) };
  return { document: await writeDocument(outcome.rules, new Pace()) };
}
