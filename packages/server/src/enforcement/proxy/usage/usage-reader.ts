/**
 * Extracts a call's usage from the bytes of its answer as they pass: JSON or server-sent events.
 * In: the answer's bytes. Out: token counts. Buffers no part of the answer, whatever its size.
 */
import { type BodyKind, JsonDocuments, JsonScanner } from "sluice/internal";
import type { UsageField, Vendor } from "./vendors.js";

export interface Usage {
  readonly prompt: number | undefined;
  readonly completion: number;
  /** Prompt tokens read from a cache. */
  readonly cachedPrompt: number;
  /** Prompt tokens written to a cache, which some vendors charge more for. */
  readonly cacheWrite: number;
}

/** An event ended before byte `next` of the chunk. `isUsageOnly`: it reports usage and has no part of the answer. */
type OnEvent = (end: { next: number; byReturn: boolean; isUsageOnly: boolean }) => void;

interface ReaderOptions {
  readonly vendor: Vendor;
  readonly kind: BodyKind;
  /** The body itself is an image or audio. */
  readonly isMedia?: boolean;
  readonly onEvent?: OnEvent | undefined;
}

/** Around a string. */
const QUOTES = 2;
/** Estimate of text where the server reports no usage. */
const BYTES_A_TOKEN = 4;
/** For base64 images and audio: models count some hundred to a few thousand tokens per image, and some dozens per second of audio. */
const MEDIA_BYTES_A_TOKEN = 1_024;
/** A link to an image instead of its bytes; the same as in a call's prompt. */
const LINK_TOKENS = 1_000;
/** A server that reports more for one call is wrong, and a counter must not take it at face value. */
const MOST_TOKENS = 1_000_000_000;

export function tokensIn(bytes: number): number {
  return Math.ceil(bytes / BYTES_A_TOKEN);
}

export class UsageReader {
  readonly #vendor: Vendor;
  readonly #kind: BodyKind;
  readonly #isMedia: boolean;
  readonly #scanner: JsonScanner;
  readonly #documents: JsonDocuments;
  readonly #counts = new Map<UsageField, number>();
  #isFinal = false;
  /** Bytes of text that the model produced; for an unread answer all bytes. */
  #textBytes = 0;
  #mediaBytes = 0;
  #links = 0;
  /** Depth of the tool input being read; 0 outside of one. */
  #toolInputDepth = 0;
  /** Some servers send the same text under both names. */
  #reasoningBytes = 0;
  #reasoningContentBytes = 0;
  /** Bytes of invalid JSON documents that are not counted as text already. */
  #brokenBytes = 0;
  /** Text in the current document. */
  #documentTextBytes = 0;
  #eventHasUsage = false;
  #eventHasChoice = false;

  constructor({ vendor, kind, isMedia = false, onEvent }: ReaderOptions) {
    this.#vendor = vendor;
    this.#kind = kind;
    this.#isMedia = isMedia;
    this.#scanner = new JsonScanner({
      key: () => {
        if (this.#toolInputDepth > 0) this.#toolInputKey();
      },
      literal: (text) => this.#literal(text),
      string: (bytes) => this.#string(bytes),
      open: () => {
        const scanner = this.#scanner;
        if (scanner.depth === 2 && scanner.path === "choices/*") this.#eventHasChoice = true;
        if (this.#toolInputDepth > 0 || !vendor.lastSteps.has(scanner.lastStep)) return;
        if (scanner.depth > 0 && vendor.isToolInput(scanner.path)) this.#toolInputDepth = scanner.depth;
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
      // Otherwise an answer would be free because it has a byte order mark, has the wrong content type, or is plain text.
      onDocument: (bytes, isJson) => {
        if (!isJson) this.#brokenBytes += this.#beyondText(bytes);
        this.#documentTextBytes = 0;
        this.#toolInputDepth = 0;
      },
    });
  }

  /** Whether the server has reported the usage of the whole answer, or a running total. */
  get isReported(): boolean {
    return this.#isFinal;
  }

  /** Whether usage has not been reported yet, and the rest of the answer may report it. */
  get mayReport(): boolean {
    return !this.#isFinal && this.#kind !== "unread";
  }

  push(chunk: Buffer): void {
    if (this.#kind === "unread") {
      if (this.#isMedia) this.#mediaBytes += chunk.length;
      else this.#textBytes += chunk.length;
      return;
    }
    this.#documents.push(chunk);
  }

  /** `isWhole`: the answer ended properly, so the last report is final. */
  usage({ isWhole }: { isWhole: boolean }): Usage {
    const counts = this.#counts;
    if (isWhole) this.#documents.end();
    const reasoningBytes = Math.max(this.#reasoningBytes, this.#reasoningContentBytes);
    const { brokenBytes, strayBytes } = this.#documents;
    const otherBytes = this.#brokenBytes + this.#beyondText(brokenBytes) + strayBytes;
    const open = this.#openString();
    const seen =
      tokensIn(this.#textBytes + reasoningBytes + open.textBytes + otherBytes) +
      Math.ceil((this.#mediaBytes + open.mediaBytes) / MEDIA_BYTES_A_TOKEN) +
      this.#links * LINK_TOKENS;
    const prompt = promptIn(counts);
    const completion = counts.get("completion");
    // Gateways report the same tokens under both names.
    const cached = Math.max(counts.get("cachedPrompt") ?? 0, counts.get("cacheRead") ?? 0);
    const cachedPrompt = Math.min(cached, prompt ?? 0);
    const reported =
      completion === undefined
        ? restOf(counts.get("total"), prompt)
        : Math.min(MOST_TOKENS, completion + (counts.get("thoughts") ?? 0));
    return {
      prompt,
      // A text cannot have 0 tokens: servers that cannot count report that.
      completion: reported && this.#isFinal && isWhole ? reported : Math.max(reported ?? 0, seen),
      cachedPrompt,
      cacheWrite: Math.min(counts.get("cacheWrite") ?? 0, (prompt ?? 0) - cachedPrompt),
    };
  }

  /** An answer may be a single long string that is broken off in the middle. */
  #openString(): { textBytes: number; mediaBytes: number } {
    const { openBytes } = this.#scanner;
    if (openBytes === 0) return { textBytes: 0, mediaBytes: 0 };
    if (this.#isText()) return { textBytes: openBytes, mediaBytes: 0 };
    return { textBytes: 0, mediaBytes: this.#mediaAt() === "base64" ? openBytes : 0 };
  }

  #string(bytes: number): void {
    if (this.#isText()) {
      this.#documentTextBytes += bytes;
      const { lastStep } = this.#scanner;
      if (lastStep === "reasoning") this.#reasoningBytes += bytes;
      else if (lastStep === "reasoning_content") this.#reasoningContentBytes += bytes;
      else this.#textBytes += bytes;
      return;
    }
    const media = this.#mediaAt();
    if (media === "link" && bytes > 0) this.#links++;
    if (media !== "base64") return;
    this.#documentTextBytes += bytes;
    this.#mediaBytes += bytes;
  }

  /** In a tool's input, the model produced the names too. */
  #toolInputKey(): void {
    const { depth, span } = this.#scanner;
    if (depth <= this.#toolInputDepth) this.#toolInputDepth = 0;
    else this.#countToolInput(span.end - span.start - QUOTES);
  }

  #countToolInput(bytes: number): void {
    this.#documentTextBytes += bytes;
    this.#textBytes += bytes;
  }

  /** A string that is the whole document can only be text, for any vendor. */
  #isText(): boolean {
    const { depth, lastStep } = this.#scanner;
    if (depth === 0 || this.#isInToolInput()) return true;
    if (!this.#vendor.lastSteps.has(lastStep)) return false;
    const { path } = this.#scanner;
    return this.#vendor.isText(path) || (this.#kind === "json" && this.#vendor.wholeText.has(path));
  }

  #mediaAt(): "base64" | "link" | undefined {
    const { lastStep } = this.#scanner;
    return this.#vendor.lastSteps.has(lastStep) ? this.#vendor.mediaAt(this.#scanner.path) : undefined;
  }

  #isInToolInput(): boolean {
    return this.#toolInputDepth > 0 && this.#scanner.depth > this.#toolInputDepth;
  }

  #beyondText(bytes: number): number {
    return Math.max(0, bytes - this.#documentTextBytes);
  }

  #literal(text: string): void {
    if (this.#isInToolInput()) {
      this.#countToolInput(text.length);
      return;
    }
    if (!this.#vendor.lastSteps.has(this.#scanner.lastStep)) return;
    const { path } = this.#scanner;
    const field = this.#vendor.usage.get(path);
    if (field === undefined) return;
    // Servers that only have floats write 40.0.
    const count = Number(text);
    if (!Number.isSafeInteger(count) || count < 0) return;
    this.#eventHasUsage = true;
    if ((field === "completion" || field === "total") && !this.#vendor.preliminary.has(path)) this.#isFinal = true;
    this.#counts.set(field, Math.min(MOST_TOKENS, Math.max(count, this.#counts.get(field) ?? 0)));
  }
}

/** All prompt tokens, including cached ones. */
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
