/**
 * Reads what a call has used from the bytes of its answer, as they pass: JSON or server-sent events.
 * In: the answer's bytes. Out: token counts. Holds no part of the answer, whatever its size.
 */
import { type BodyKind, JsonDocuments, JsonScanner } from "sluice/internal";
import type { UsageField, Vendor } from "./vendors.js";

export interface Usage {
  readonly prompt: number | undefined;
  readonly completion: number;
  /** The part of the prompt that came from a cache. */
  readonly cachedPrompt: number;
}

/** An event ended before byte `next` of the chunk. `isUsageOnly`: it reports usage and carries no part of the answer. */
type OnEvent = (end: { next: number; byReturn: boolean; isUsageOnly: boolean }) => void;

/** Text counts as one token for so many bytes where the server reports nothing. */
const BYTES_A_TOKEN = 4;
/** A server that reports more for one call is wrong; a counter must not take it for a fact. */
const MOST_TOKENS = 1_000_000_000;

export function tokensIn(bytes: number): number {
  return Math.ceil(bytes / BYTES_A_TOKEN);
}

export class UsageReader {
  readonly #vendor: Vendor;
  readonly #kind: BodyKind;
  readonly #scanner: JsonScanner;
  readonly #documents: JsonDocuments;
  readonly #counts = new Map<UsageField, number>();
  #isFinal = false;
  /** Bytes of text that the model produced; of an unread answer all bytes. */
  #textBytes = 0;
  /** Two names of the same text: some servers send it under both. */
  #reasoningBytes = 0;
  #reasoningContentBytes = 0;
  /** Of documents that should be JSON and are none: bytes that are not among the text already. */
  #brokenBytes = 0;
  /** Of the document that is being read. */
  #documentTextBytes = 0;
  #eventHasUsage = false;
  #eventHasChoice = false;

  constructor({ vendor, kind, onEvent }: { vendor: Vendor; kind: BodyKind; onEvent?: OnEvent | undefined }) {
    this.#vendor = vendor;
    this.#kind = kind;
    this.#scanner = new JsonScanner({
      literal: (text) => this.#literal(text),
      string: (bytes) => {
        if (!this.#isText()) return;
        this.#documentTextBytes += bytes;
        const { lastStep } = this.#scanner;
        if (lastStep === "reasoning") this.#reasoningBytes += bytes;
        else if (lastStep === "reasoning_content") this.#reasoningContentBytes += bytes;
        else this.#textBytes += bytes;
      },
      open: () => {
        const scanner = this.#scanner;
        if (scanner.depth === 2 && scanner.path === "choices/*") this.#eventHasChoice = true;
      },
    });
    this.#documents = new JsonDocuments({
      kind,
      scanner: this.#scanner,
      onEvent: (next, byReturn) => {
        const isUsageOnly = this.#eventHasUsage && !this.#eventHasChoice;
        this.#eventHasUsage = false;
        this.#eventHasChoice = false;
        onEvent?.({ next, byReturn, isUsageOnly });
      },
      // Else an answer would cost nothing because it has a byte order mark, is under the wrong name, or sends its text bare.
      onDocument: (bytes, isJson) => {
        if (!isJson) this.#brokenBytes += this.#beyondText(bytes);
        this.#documentTextBytes = 0;
      },
    });
  }

  push(chunk: Buffer): void {
    if (this.#kind === "unread") {
      this.#textBytes += chunk.length;
      return;
    }
    this.#documents.push(chunk);
  }

  /** `isWhole`: the answer ended as it should; what was reported on the way is then final. */
  usage({ isWhole }: { isWhole: boolean }): Usage {
    const counts = this.#counts;
    if (isWhole) this.#documents.end();
    const reasoningBytes = Math.max(this.#reasoningBytes, this.#reasoningContentBytes);
    const { brokenBytes, strayBytes } = this.#documents;
    const otherBytes = this.#brokenBytes + this.#beyondText(brokenBytes) + strayBytes;
    const seen = tokensIn(this.#textBytes + reasoningBytes + this.#openTextBytes() + otherBytes);
    const prompt = promptIn(counts);
    const completion = counts.get("completion");
    const reported =
      completion === undefined
        ? restOf(counts.get("total"), prompt)
        : Math.min(MOST_TOKENS, completion + (counts.get("thoughts") ?? 0));
    return {
      prompt,
      // No text has 0 tokens: servers that cannot count report that.
      completion: reported && this.#isFinal && isWhole ? reported : Math.max(reported ?? 0, seen),
      // Gateways report the same tokens under both names.
      cachedPrompt: Math.min(Math.max(counts.get("cachedPrompt") ?? 0, counts.get("cacheRead") ?? 0), prompt ?? 0),
    };
  }

  /** An answer may be one long string, and be broken off in its middle. */
  #openTextBytes(): number {
    const { openBytes } = this.#scanner;
    return openBytes > 0 && this.#isText() ? openBytes : 0;
  }

  /** A string that is the whole document is text of any vendor: it can be nothing else. */
  #isText(): boolean {
    const { depth, lastStep } = this.#scanner;
    return depth === 0 || (this.#vendor.lastSteps.has(lastStep) && this.#vendor.isText(this.#scanner.path));
  }

  #beyondText(bytes: number): number {
    return Math.max(0, bytes - this.#documentTextBytes);
  }

  #literal(text: string): void {
    if (!this.#vendor.lastSteps.has(this.#scanner.lastStep)) return;
    const { path } = this.#scanner;
    const field = this.#vendor.usage.get(path);
    if (field === undefined) return;
    if (!/^\d{1,15}$/.test(text)) return;
    const count = Number(text);
    this.#eventHasUsage = true;
    if ((field === "completion" || field === "total") && !this.#vendor.preliminary.has(path)) this.#isFinal = true;
    this.#counts.set(field, Math.min(MOST_TOKENS, Math.max(count, this.#counts.get(field) ?? 0)));
  }
}

/** All tokens of the prompt, those from a cache too. */
function promptIn(counts: ReadonlyMap<UsageField, number>): number | undefined {
  const prompt = counts.get("prompt");
  const input = counts.get("input");
  if (input === undefined) return prompt;
  const beside = (counts.get("cacheRead") ?? 0) + (counts.get("cacheWrite") ?? 0);
  return Math.min(MOST_TOKENS, Math.max(prompt ?? 0, prompt === undefined ? input + beside : input));
}

function restOf(total: number | undefined, prompt: number | undefined): number | undefined {
  return total === undefined ? undefined : Math.max(0, total - (prompt ?? 0));
}
