/**
 * Reads what a call asks for from the bytes of its JSON body, as they arrive: model, bounds on the answer, size of the prompt.
 * In: the body's bytes. Out: facts of the call, or the mistake for which it is refused. Keeps no part of the body.
 * A name that comes twice is refused: parsers differ in which of the two they take, and the limits would be another model's. So is one in
 * other letters, such as "Model": Go's parser, and Ollama with it, takes both for the same.
 */
import { JsonScanner, textOf } from "sluice/internal";
import type { Splice } from "./splice-blocks.js";
import { tokensIn } from "./usage-reader.js";
import { allBounds, choiceCounts, LIFTING_BOUND } from "./vendors.js";

export interface CallFacts {
  readonly model: string | undefined;
  /** Everything but absent, `false` and `null`: servers take "yes" and 1 for true. */
  readonly isStream: boolean;
  /** The most tokens that the answer may have, over all of its choices; undefined where the call does not say, or in no usable form. */
  readonly maxTokens: number | undefined;
  /** By the bytes of its texts. */
  readonly promptTokens: number;
  /** How to ask for usage in the stream; undefined if it is asked for, or cannot be. */
  readonly askForUsage: Splice | undefined;
}

/** The estimate must stay a whole number that every store counts exactly. */
const MOST_TOKENS = 1_000_000_000;
const MOST_MODEL_LENGTH = 256;
/** A long string of these characters is an image or a file, which a model takes for about as many tokens as a short text. */
const base64Text = /^(?:data:[\w/+.;=-]*,)?[\w+/=-]+$/;
const MEDIA_BYTES = 1_024;
const MEDIA_TOKENS = 1_000;
/** Around a name. */
const QUOTES = 2;
/**
 * Where vendors take images, sounds and files: the parts of a call that hold them, and the names that they have there. Elsewhere, such as in
 * the description of a tool, a long text without spaces would pass for a short one, and a call that is broken off is charged by this.
 */
const mediaParts = new Set(["messages", "input", "contents", "images", "image", "image_data", "multimodal_data"]);
const mediaSteps = new Set([
  ...["url", "image_url", "data", "file_data", "b64_json", "image", "images", "audio", "bytes"],
  ...["image_data", "multimodal_data"],
]);
/** Of these the model reads the names and the numbers too. */
const schemaParts = new Set(["tools", "functions", "response_format", "text", "toolConfig", "format"]);
/** A prompt may be a list of tokens, by their numbers. */
const tokenParts = new Set(["prompt", "input"]);

/** Of all paths that are read. */
const MOST_STEPS = 2;

const readPaths = new Set([
  "model",
  "stream",
  "stream_options",
  "stream_options/include_usage",
  ...allBounds,
  LIFTING_BOUND,
  ...choiceCounts,
]);

/** Those, and the objects that they stand in: of two of these, too, one parser takes the first and another the last. */
const knownPaths = new Set([...readPaths, ...[...readPaths].map((path) => path.replace(/\/.*/, ""))]);
const knownByFold = new Map([...knownPaths].map((path) => [fold(path), path]));

/** As Go's parser compares names: by capital letters, which the long s (U+017F) and the sign for kelvin (U+212A) share with s and k. */
function fold(path: string): string {
  return path.toUpperCase().toLowerCase();
}

export class CallReader {
  readonly #scanner: JsonScanner;
  readonly #bounds: readonly string[];
  readonly #seen = new Set<string>();
  /** Numbers as they were written; of what is none, what it is instead. */
  readonly #literals = new Map<string, string>();
  #mistake: string | undefined;
  #model: string | undefined;
  #isStream = false;
  #textBytes = 0;
  #tokens = 0;
  #media = 0;
  /** In a list: each has an answer of its own. */
  #prompts = 0;
  /** The top member that is being read. */
  #part = "";
  /** Where the object's first member would stand. */
  #insideTop: number | undefined;
  #hasStreamOption = false;
  #streamOptions: { kind: "null" | "object" | "other"; start: number; end: number } | undefined;
  #includeUsage: { isTrue: boolean; start: number; end: number } | undefined;

  /** `bounds`: where the server that is called looks for the most tokens of its answer. */
  constructor(bounds: readonly string[] = allBounds) {
    this.#bounds = bounds;
    this.#scanner = new JsonScanner({
      key: () => this.#key(),
      open: (kind) => this.#open(kind),
      literal: (text) => this.#literal(text),
      string: (bytes, start) => this.#string(bytes, start),
    });
  }

  push(chunk: Buffer): void {
    this.#scanner.push(chunk);
  }

  /** Undefined while the body may be accepted. */
  get mistake(): string | undefined {
    return this.#scanner.mistake === undefined ? this.#mistake : `body: expected JSON; ${this.#scanner.mistake}`;
  }

  /** After the last byte. */
  end(): CallFacts | undefined {
    this.#scanner.end();
    if (this.#insideTop === undefined) this.#mistake ??= "body: expected a JSON object";
    if (this.mistake !== undefined) return undefined;
    return {
      model: this.#model,
      isStream: this.#isStream,
      maxTokens: this.#maxTokens(),
      promptTokens: Math.min(MOST_TOKENS, tokensIn(this.#textBytes) + this.#tokens + this.#media * MEDIA_TOKENS),
      askForUsage: this.#splice(),
    };
  }

  #key(): void {
    const { depth, span } = this.#scanner;
    if (depth > 1 && schemaParts.has(this.#part)) this.#textBytes += span.end - span.start - QUOTES;
    // Most names of a call stand deeper, in its messages.
    if (depth > MOST_STEPS) return;
    const { path } = this.#scanner;
    if (depth === 1) this.#part = path;
    if (path.startsWith("stream_options/")) this.#hasStreamOption = true;
    if (!knownPaths.has(path)) {
      const meant = knownByFold.get(fold(path));
      if (meant !== undefined) this.#mistake ??= `${dotted(path)}: expected ${dotted(meant)}, in these letters`;
      return;
    }
    if (this.#seen.has(path)) this.#mistake ??= `${dotted(path)}: expected once, got twice`;
    this.#seen.add(path);
  }

  #open(kind: "object" | "array"): void {
    const { path, depth, span } = this.#scanner;
    if (depth === 0 && kind === "object") this.#insideTop = span.end;
    if (path === "prompt/*") this.#prompts++;
    if (path === "stream_options") this.#streamOptions = { kind: kind === "object" ? "object" : "other", ...span };
    else if (path === "stream_options/include_usage") this.#streamOptions = { kind: "other", ...span };
    else if (path === "stream") this.#isStream = true;
    else if (path === "model") this.#mistake ??= "model: expected a string";
    else if (readPaths.has(path)) this.#literals.set(path, kind);
  }

  #literal(text: string): void {
    if (this.#scanner.lastStep === "*" && tokenParts.has(this.#part)) this.#tokens++;
    else if (schemaParts.has(this.#part)) this.#textBytes += text.length;
    const { path, span } = this.#scanner;
    if (!readPaths.has(path)) return;
    if (path === "stream_options/include_usage") this.#includeUsage = { isTrue: text === "true", ...span };
    else if (path === "stream") this.#isStream = text !== "false" && text !== "null";
    else if (path === "stream_options") this.#streamOptions = { kind: text === "null" ? "null" : "other", ...span };
    else if (path === "model" && text !== "null") this.#mistake ??= "model: expected a string";
    else this.#literals.set(path, text);
  }

  #string(bytes: number, start: string): void {
    const { path, span } = this.#scanner;
    if (path === "prompt/*") this.#prompts++;
    if (bytes >= MEDIA_BYTES && this.#isMedia() && base64Text.test(start)) this.#media++;
    else this.#textBytes += bytes;
    if (path === "stream_options/include_usage") this.#includeUsage = { isTrue: false, ...span };
    else if (path === "stream") this.#isStream = true;
    else if (path === "stream_options") this.#streamOptions = { kind: "other", ...span };
    else if (path === "model") this.#readModel(bytes, start);
    else if (readPaths.has(path)) this.#literals.set(path, "string");
  }

  /** By the name of the string, or of the list that it stands in. */
  #isMedia(): boolean {
    if (!mediaParts.has(this.#part)) return false;
    const { lastStep, path } = this.#scanner;
    if (lastStep !== "*") return mediaSteps.has(lastStep);
    const steps = path.split("/");
    return mediaSteps.has(steps.findLast((step) => step !== "*") ?? "");
  }

  #readModel(bytes: number, start: string): void {
    const model = bytes > MOST_MODEL_LENGTH ? undefined : textOf(start);
    if (model === undefined) this.#mistake ??= `model: expected text of at most ${MOST_MODEL_LENGTH} bytes`;
    else this.#model = model;
  }

  /**
   * The largest that the call names, for each of its prompts and their choices. None, if any of them is no whole number above 0: the server
   * may refuse it, take it for "no bound", or read a number out of it ("5000"), whatever stands under the other names.
   */
  #maxTokens(): number | undefined {
    const bounds = this.#counts(this.#bounds);
    const lifting = this.#counts([LIFTING_BOUND]);
    const choices = this.#counts(choiceCounts);
    if (bounds.length === 0) return undefined;
    const most = Math.max(...bounds, ...lifting) * Math.max(1, ...choices) * Math.max(1, this.#prompts);
    return Number.isNaN(most) ? undefined : Math.min(MOST_TOKENS, most);
  }

  /** Of those that the call names; NaN for what is no count. */
  #counts(paths: readonly string[]): number[] {
    return paths.flatMap((path) => {
      const text = this.#literals.get(path);
      if (text === undefined || text === "null") return [];
      const count = Number(text);
      return Number.isSafeInteger(count) && count > 0 ? count : Number.NaN;
    });
  }

  #splice(): Splice | undefined {
    const options = this.#streamOptions;
    if (options === undefined) {
      const at = this.#insideTop!;
      return { start: at, end: at, text: '"stream_options":{"include_usage":true},' };
    }
    const { kind, start, end } = options;
    const asked = this.#includeUsage;
    if (kind === "other" || asked?.isTrue) return undefined;
    if (kind === "null") return { start, end, text: '{"include_usage":true}' };
    if (asked !== undefined) return { start: asked.start, end: asked.end, text: "true" };
    return { start: end, end, text: `"include_usage":true${this.#hasStreamOption ? "," : ""}` };
  }
}

function dotted(path: string): string {
  return path.replace("/", ".");
}
