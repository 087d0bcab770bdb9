/**
 * A draft: the rules that a change proposes, validated. Two forms with one contract:
 *   EditedRules       a small document, validated on the thread that decides requests, in slices
 *   PreparedDocument  a large one, which a worker thread validated, wrote and compared (`rule-worker.ts`). Of a dry run, nothing is left
 *                     for the thread that decides requests but the answer; of a change, the rules are parsed once more and compiled.
 */
import { parseRulesInSlices, type Rule } from "sluice";
import { TimeSlice } from "sluice/internal";
import { digestOf, keepDocument, readDocument, writeDocument } from "./document-text.js";
import { diffRules, type RuleDiff } from "./rule-diff.js";

/** The text that is stored, and its digest. */
interface DraftText {
  readonly document: string;
  readonly digest: string;
}

export interface Draft {
  /** False: no service refuses it, so nothing needs the rules just to ask. */
  readonly needsGlobalStore: boolean;
  rules(): Promise<readonly Rule[]>;
  diffFrom(old: readonly Rule[]): Promise<RuleDiff>;
  text(): Promise<DraftText>;
}

export async function draftOf(proposed: unknown): Promise<Draft> {
  if (proposed instanceof PreparedDocument) return proposed;
  return new EditedRules(await parseRulesInSlices(proposed));
}

class EditedRules implements Draft {
  readonly #rules: readonly Rule[];
  readonly #slice = new TimeSlice();

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  get needsGlobalStore(): boolean {
    return needsGlobalStore(this.#rules);
  }

  async rules(): Promise<readonly Rule[]> {
    return this.#rules;
  }

  diffFrom(old: readonly Rule[]): Promise<RuleDiff> {
    return diffRules(old, this.#rules, this.#slice);
  }

  async text(): Promise<DraftText> {
    const document = await writeDocument(this.#rules, this.#slice);
    return { document, digest: digestOf(document) };
  }
}

interface Prepared {
  readonly document: Uint8Array;
  readonly digest: string;
  readonly needsGlobalStore: boolean;
  /** What `base` was compared with, and the difference. */
  readonly base: readonly Rule[];
  readonly diff: RuleDiff;
  /** As the body had it, not validated; absent where it had none. */
  readonly version?: unknown;
}

export class PreparedDocument implements Draft {
  readonly #prepared: Prepared;
  readonly #bytes: Buffer;
  #rules: Promise<readonly Rule[]> | undefined;

  constructor(prepared: Prepared) {
    this.#prepared = prepared;
    this.#bytes = bufferOver(prepared.document);
  }

  get needsGlobalStore(): boolean {
    return this.#prepared.needsGlobalStore;
  }

  get version(): unknown {
    return this.#prepared.version;
  }

  rules(): Promise<readonly Rule[]> {
    this.#rules ??= readValidated(this.#bytes);
    return this.#rules;
  }

  async diffFrom(old: readonly Rule[]): Promise<RuleDiff> {
    const { base, diff } = this.#prepared;
    // Another change was faster: the thread compared with rules that are no longer the newest.
    return old === base ? diff : diffRules(old, await this.rules(), new TimeSlice());
  }

  async text(): Promise<DraftText> {
    return { document: this.#bytes.toString(), digest: this.#prepared.digest };
  }
}

export function needsGlobalStore(rules: readonly Rule[]): boolean {
  return rules.some(({ scope }) => scope === "global");
}

/** The rules of a document that was validated and written elsewhere. It is kept beside them. */
export async function readValidated(document: Uint8Array): Promise<readonly Rule[]> {
  const bytes = bufferOver(document);
  const { rules } = (await readDocument(bytes.toString(), new TimeSlice())) as { rules: readonly Rule[] };
  keepDocument(rules, bytes);
  return rules;
}

/** Without a copy: there may be megabytes. */
function bufferOver({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}
