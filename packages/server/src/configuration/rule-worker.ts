/**
 * Reads rules on a worker thread: files of YAML, which is read at about a megabyte a second, and large request bodies. On the thread
 * that decides requests, either would hold up every check for as long.
 * In: the text, or the body's bytes and the document in force. Out: the new document as our own text, which is read in slices, and how it
 * differs; or its mistakes.
 */
import { isMainThread } from "node:worker_threads";
import { invalidRules, type Mistake, parseRulesInSlices, type Rule, validateRules } from "sluice";
import { TimeSlice } from "sluice/internal";
import { ServiceError } from "../errors.js";
import { runInThread } from "../threads/run-in-thread.js";
import { digestOf, readDocument, writeDocument } from "./document-text.js";
import { needsGlobalStore, readValidated } from "./draft.js";
import { diffRules, type RuleDiff } from "./rule-diff.js";
import { type PlacedMistake, readRuleFile } from "./rule-file.js";

type ReadFile = { readonly document: string } | { readonly mistakes: readonly PlacedMistake[] };

interface ReadDocument {
  readonly document: Uint8Array;
  readonly digest: string;
  readonly needsGlobalStore: boolean;
  /** From the document in force, if that was given. */
  readonly diff?: RuleDiff;
  readonly version?: unknown;
}

/** `ranInWorker`: false where there was nothing built to start a thread from. */
export type ReadBody = { readonly ranInWorker: boolean } & (
  | ReadDocument
  | { readonly mistakes: readonly Mistake[] }
  | { readonly unreadable: string }
);

/** What the thread answers. */
export type ReadAnswer = ReadFile | ReadBody;

interface BodyTask {
  /** Transferred to the thread if its buffer holds nothing else: the caller must not use it afterwards. */
  readonly body: Uint8Array;
  /** The body is this one rule; absent: it is a document. */
  readonly id?: string | undefined;
  /** The document in force, in our own form, to compare with. */
  readonly base?: Uint8Array | undefined;
}

/** The input of the thread: a file's text, or a body. */
export type Task = { readonly text: string } | BodyTask;

export async function readRuleFileInWorker(text: string): Promise<ReadFile> {
  return await runInWorker<ReadFile>({ text });
}

/** Bodies are read one after another: each takes some hundred megabytes for a while. */
const MOST_WAITING = 16;
let waiting = 0;
let lastBody: Promise<unknown> = Promise.resolve();

export async function readBodyInWorker(task: BodyTask): Promise<ReadBody> {
  if (waiting >= MOST_WAITING) throw new ServiceError("too-busy", "too many large documents are being read");
  waiting++;
  const mine = lastBody.then(() => runInWorker<ReadBody>(task));
  lastBody = mine.catch(() => undefined);
  return await mine.finally(() => {
    waiting--;
  });
}

/** Smaller documents take some milliseconds, less than starting a thread. */
const SMALL_CHARACTERS = 64 * 1_024;

/** The rules of a stored or cached document. Throws SyntaxError, or `invalid-rules` with the mistakes. */
export async function readStoredRules(text: string): Promise<readonly Rule[]> {
  const here = async () => await parseRulesInSlices(await readDocument(text, new TimeSlice()));
  if (text.length <= SMALL_CHARACTERS) return await here();
  // A thread that fails tells nothing about the document.
  const read = await runInWorker<ReadBody>({ body: Buffer.from(text) }).catch(() => undefined);
  if (read === undefined) return await here();
  if ("unreadable" in read) throw new SyntaxError(read.unreadable);
  if ("mistakes" in read) throw invalidRules(read.mistakes);
  return await readValidated(read.document);
}

/** A text is answered with a `ReadFile`, a body with a `ReadBody`. */
function runInWorker<Answer extends ReadAnswer>(task: Task): Promise<Answer> {
  const file = new URL("./rule-worker-thread.js", import.meta.url);
  const transfer = "body" in task && isAlone(task.body) ? [task.body.buffer as ArrayBuffer] : [];
  return runInThread({ file, task, transfer, otherwise: (given: Task) => runTask(given) as Promise<Answer> });
}

/** Small buffers share one with others. */
function isAlone({ buffer, byteLength }: Uint8Array): boolean {
  return buffer.byteLength === byteLength;
}

export async function runTask(task: Task): Promise<ReadAnswer> {
  if ("text" in task) return await readFile(task.text);
  return { ranInWorker: !isMainThread, ...(await readBody(task)) } as ReadBody;
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

async function readBody({ body, id, base }: BodyTask): Promise<object> {
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
  const { rules } = outcome;
  const text = await writeDocument(rules, new TimeSlice());
  const read: ReadDocument = {
    document: new TextEncoder().encode(text),
    digest: digestOf(text),
    needsGlobalStore: needsGlobalStore(rules),
    ...(base !== undefined && { diff: await diffFrom(base, rules) }),
    ...(isGuarded && { version }),
  };
  return read;
}

async function diffFrom(base: Uint8Array, rules: readonly Rule[]): Promise<RuleDiff> {
  const slice = new TimeSlice();
  const old = (await readDocument(utf8.decode(base), slice)) as { rules: Rule[] };
  return await diffRules(old.rules, rules, slice);
}
