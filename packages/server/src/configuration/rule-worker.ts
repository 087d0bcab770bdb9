/**
 * Reads rules on a thread of its own: files of YAML, which is read at about a megabyte a second, and large request bodies. On the thread
 * that decides requests, either would hold up every check for as long.
 * In: the text, or the body's bytes. Out: the document as our own text, which is read in slices, or its mistakes.
 */
import { isMainThread } from "node:worker_threads";
import { type Mistake, validateRules } from "sluice";
import { TimeSlice } from "sluice/internal";
import { ServiceError } from "../errors.js";
import { runInThread } from "../run-in-thread.js";
import { writeDocument } from "./document-text.js";
import { type PlacedMistake, readRuleFile } from "./rule-file.js";

type ReadFile = { readonly document: string } | { readonly mistakes: readonly PlacedMistake[] };

/** `ranInWorker`: false where there was nothing built to start a thread from. */
export type ReadBody = { readonly ranInWorker: boolean } & (
  | { readonly document: Uint8Array; readonly version?: unknown }
  | { readonly mistakes: readonly Mistake[] }
  | { readonly unreadable: string }
);

/** The input of the thread: a file's text; or a body, with the id of the rule that it stands for, if for one. */
export type Task = { readonly text: string } | { readonly body: Uint8Array; readonly id: string | undefined };

export async function readRuleFileInWorker(text: string): Promise<ReadFile> {
  return (await runInWorker({ text })) as ReadFile;
}

/** Bodies are read one after another: each takes some hundred megabytes for a while. */
const MOST_WAITING = 16;
let waiting = 0;
let lastBody: Promise<unknown> = Promise.resolve();

/** `id`: the body is this one rule; absent: it is a document. */
export async function readBodyInWorker(body: Buffer, id: string | undefined): Promise<ReadBody> {
  if (waiting >= MOST_WAITING) throw new ServiceError("too-busy", "too many large documents are being read");
  waiting++;
  const mine = lastBody.then(() => runInWorker({ body, id }) as Promise<ReadBody>);
  lastBody = mine.catch(() => undefined);
  return await mine.finally(() => {
    waiting--;
  });
}

function runInWorker(task: Task): Promise<ReadFile | ReadBody> {
  return runInThread({ file: new URL("./rule-worker-thread.js", import.meta.url), task, otherwise: runTask });
}

export async function runTask(task: Task): Promise<ReadFile | ReadBody> {
  if ("text" in task) return await readFile(task.text);
  return { ranInWorker: !isMainThread, ...(await readBody(task.body, task.id)) } as ReadBody;
}

async function readFile(text: string): Promise<ReadFile> {
  const read = readRuleFile(text);
  if ("mistakes" in read) return read;
  const outcome = validateRules(read.document);
  if ("mistakes" in outcome) return { mistakes: read.place(outcome.mistakes) };
  return { document: await writeDocument(outcome.rules, new TimeSlice()) };
}

/** Bytes that are no UTF-8 are a mistake, as in a small body; they would otherwise become question marks. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

async function readBody(body: Uint8Array, id: string | undefined): Promise<object> {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(body));
  } catch (error) {
    return { unreadable: (error as Error).message };
  }
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const { version, ...rest } = (isObject ? value : {}) as { version?: unknown };
  const isGuarded = id === undefined && isObject && Object.hasOwn(value as object, "version");
  // The id stands in the path already.
  const written =
    id === undefined ? (isGuarded ? rest : value) : { rules: [isObject ? { id, ...(value as object) } : value] };
  const outcome = validateRules(written);
  if ("mistakes" in outcome) return outcome;
  const document = new TextEncoder().encode(await writeDocument(outcome.rules, new TimeSlice()));
  return { document, ...(isGuarded && { version }) };
}
