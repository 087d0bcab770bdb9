/**
 * Extracts what a call asks for from its JSON body as the bytes arrive: model, bounds on the answer, size of the prompt.
 * In: the body's bytes. Out: facts of the call, or the mistake for which it is refused. Keeps no part of the body.
 * A duplicate name is refused: parsers differ in which one they use, so the limits of another model might apply. So is a name in different
 * case, such as "Model": Go's JSON parser, and so Ollama, takes both for the same.
 */
import { JsonScanner, textOf } from "sluice/internal";
import type { Splice } from "./splice-blocks.js";
import { tokensIn } from "./usage-reader.js";
import { allBounds, choiceCounts, LIFTING_BOUND } from "./vendors.js";

export interface CallFacts {
  readonly model: string | undefined;
  /** True for anything but absent, `false` and `null` (servers accept "yes" and 1), unless the path decides. */
  readonly isStream: boolean;
  /** Maximum tokens of the answer over all its choices; undefined if the call does not bound it, or not in a usable form. */
  readonly maxTokens: number | undefined;
  /** Estimated from the size of its text, and from content that it references. */
  readonly promptTokens: number;
  /** The answer only acknowledges that work has begun (`background` in the Responses API). */
  readonly isBackground: boolean;
  /** The edit that requests usage in the stream; undefined if it is requested already, or cannot be. */
  readonly askForUsage: Splice | undefined;
}

/** Keeps estimates in the range that every store counts exactly. */
const MOST_TOKENS = 1_000_000_000;
const MOST_MODEL_LENGTH = 256;
/** A long string of only these characters is an image or a file, which costs a model about as many tokens as a short text. */
const base64Text = /^(?:data:[\w/+.;=-]*,)?[\w+/=-]+$/;
const MEDIA_BYTES = 1_024;
const MEDIA_TOKENS = 1_000;
/**
 * Charged for earlier context that the vendor stores and prepends to the prompt, of unknown size. A call that is broken off is charged by
 * this estimate.
 */
const EARLIER_TOKENS = 10_000;
/** Around a string. */
const QUOTES = 2;
/**
 * Where vendors accept images, audio and files: the members of a call, and their names within. Elsewhere, such as in a tool's description,
 * a long text without spaces would count as a short one, and a call that is broken off is charged by this estimate.
 */
const mediaParts = new Set(["messages", "input", "contents", "images", "image", "image_data", "multimodal_data"]);
const mediaSteps = new Set([
  ...["url", "image_url", "data", "file_data", "b64_json", "image", "images", "audio", "bytes"],
  ...["image_data", "multimodal_data"],
]);
/** In these members the model reads names and numbers too. */
const schemaParts = new Set(["tools", "functions", "response_format", "text", "toolConfig", "format", "documents"]);
/** And in these, wherever they occur in a message: what a model passed to a tool, and the tool's answer. */
const toolSteps = new Set(["input", "args", "arguments", "parameters", "json", "response", "output"]);
/** A prompt may be a list of token ids; Ollama's `context` is one from an earlier call. */
const tokenParts = new Set(["prompt", "input", "context"]);
/** An image or a file that the vendor stores or fetches. */
const namedMediaSteps = new Set(["image_url", "file_url", "video_url", "audio_url", "file_id", "fileUri", "file_uri"]);
/** These own a `url` or `uri` step. */
const namedMediaOwners = new Set(["image_url", "video_url", "audio_url", "source", "s3Location", "s3_location"]);
/** Parts of the prompt that the vendor stores. */
const earlierPaths = new Set([
  ...["previous_response_id", "conversation", "conversation/id", "prompt/id"],
  ...["cachedContent", "cached_content"],
]);

/** Depth of the paths that are read. */
const MOST_STEPS = 2;

const readPaths = new Set([
  "model",
  "stream",
  "background",
  "stream_options",
  "stream_options/include_usage",
  ...allBounds,
  LIFTING_BOUND,
  ...choiceCounts,
]);

/** Those, and their parent objects: parsers disagree on duplicates of these, too. */
const knownPaths = new Set([...readPaths, ...[...readPaths].map((path) => path.replace(/\/.*/, ""))]);
const knownByFold = new Map([...knownPaths].map((path) => [fold(path), path]));

/**
 * What a lenient parser may take a name for. Go's ignores case: via upper case, where the long s (U+017F) and the Kelvin sign (U+212A)
 * equal S and K. Those in C (cJSON) end a string at its first NUL.
 */
function fold(path: string): string {
  return path.replace(/\0.*/s, "").toUpperCase().toLowerCase();
}

export class CallReader {
  readonly #scanner: JsonScanner;
  readonly #bounds: readonly string[];
  readonly #seen = new Set<string>();
  /** The raw text of numbers and literals; for other values, their type. */
  readonly #literals = new Map<string, string>();
  #mistake: string | undefined;
  #model: string | undefined;
  readonly #isStreamByDefault: boolean;
  #isStream: boolean;
  #textBytes = 0;
  #tokens = 0;
  #media = 0;
  #earlier = 0;
  /** Depth of the tool's input or output being read; 0 outside of one. */
  #toolDepth = 0;
  /** Prompts in a list: each gets its own answer. */
  #prompts = 0;
  /** The top-level member being read. */
  #part = "";
  /** Offset right after the object's opening brace. */
  #insideTop: number | undefined;
  #hasStreamOption = false;
  #streamOptions: { kind: "null" | "object" | "other"; start: number; end: number } | undefined;
  #includeUsage: { isTrue: boolean; start: number; end: number } | undefined;

  /** `bounds`: the paths where this server looks for the maximum tokens. `isStream`: the default if the body does not say. */
  constructor(bounds: readonly string[] = allBounds, { isStream = false } = {}) {
    this.#bounds = bounds;
    this.#isStreamByDefault = isStream;
    this.#isStream = isStream;
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

  /** Undefined while the body is acceptable. */
  get mistake(): string | undefined {
    return this.#scanner.mistake === undefined ? this.#mistake : `body: expected JSON; ${this.#scanner.mistake}`;
  }

  /** Call this after the last byte. */
  end(): CallFacts | undefined {
    this.#scanner.end();
    if (this.#insideTop === undefined) this.#mistake ??= "body: expected a JSON object";
    if (this.mistake !== undefined) return undefined;
    return {
      model: this.#model,
      isStream: this.#isStream,
      maxTokens: this.#maxTokens(),
      promptTokens: Math.min(
        MOST_TOKENS,
        tokensIn(this.#textBytes) + this.#tokens + this.#media * MEDIA_TOKENS + this.#earlier * EARLIER_TOKENS,
      ),
      isBackground: !["false", "null", undefined].includes(this.#literals.get("background")),
      askForUsage: this.#splice(),
    };
  }

  #key(): void {
    const { depth, span } = this.#scanner;
    if (depth <= this.#toolDepth) this.#toolDepth = 0;
    if (this.#isReadWhole()) this.#textBytes += span.end - span.start - QUOTES;
    // Most names of a call are deeper, in its messages.
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
    if (depth > MOST_STEPS && this.#toolDepth === 0 && toolSteps.has(this.#scanner.lastStep)) this.#toolDepth = depth;
    if (path === "prompt/*") this.#prompts++;
    if (path === "stream_options") this.#streamOptions = { kind: kind === "object" ? "object" : "other", ...span };
    else if (path === "stream_options/include_usage") this.#streamOptions = { kind: "other", ...span };
    else if (path === "stream") this.#isStream = true;
    else if (path === "model") this.#mistake ??= "model: expected a string";
    else if (readPaths.has(path)) this.#literals.set(path, kind);
  }

  #literal(text: string): void {
    if (this.#scanner.lastStep === "*" && tokenParts.has(this.#part)) this.#tokens++;
    else if (this.#isReadWhole()) this.#textBytes += text.length;
    const { path, span } = this.#scanner;
    if (!readPaths.has(path)) return;
    if (path === "stream_options/include_usage") this.#includeUsage = { isTrue: text === "true", ...span };
    else if (path === "stream") this.#isStream = text === "null" ? this.#isStreamByDefault : text !== "false";
    else if (path === "stream_options") this.#streamOptions = { kind: text === "null" ? "null" : "other", ...span };
    else if (path === "model" && text !== "null") this.#mistake ??= "model: expected a string";
    else this.#literals.set(path, text);
  }

  #string(bytes: number, start: string): void {
    const { path, span } = this.#scanner;
    if (path === "prompt/*") this.#prompts++;
    if (bytes >= MEDIA_BYTES && this.#isMedia() && base64Text.test(start)) this.#media++;
    else {
      this.#textBytes += bytes;
      if (bytes > 0 && earlierPaths.has(path)) this.#earlier++;
      else if (bytes > 0 && this.#isNamedMedia(path, start)) this.#media++;
    }
    if (path === "stream_options/include_usage") this.#includeUsage = { isTrue: false, ...span };
    else if (path === "stream") this.#isStream = true;
    else if (path === "stream_options") this.#streamOptions = { kind: "other", ...span };
    else if (path === "model") this.#readModel(bytes, start);
    else if (readPaths.has(path)) this.#literals.set(path, "string");
  }

  /** Whether the model reads names and numbers here. */
  #isReadWhole(): boolean {
    const { depth } = this.#scanner;
    return (depth > 1 && schemaParts.has(this.#part)) || (this.#toolDepth > 0 && depth > this.#toolDepth);
  }

  /** Annotations belong to earlier answers: what they reference is no part of the prompt. */
  #isNamedMedia(path: string, start: string): boolean {
    if (!mediaParts.has(this.#part) || this.#toolDepth > 0 || /^data:/i.test(start)) return false;
    const [owner = "", last = ""] = path.split("/").slice(-2);
    const isNamed = namedMediaSteps.has(last) || ((last === "url" || last === "uri") && namedMediaOwners.has(owner));
    return isNamed && !path.includes("/annotations/");
  }

  /** Decided by the name of the string, or of the list that contains it. */
  #isMedia(): boolean {
    if (!mediaParts.has(this.#part)) return false;
    const { lastStep, path } = this.#scanner;
    if (lastStep !== "*") return mediaSteps.has(lastStep);
    const steps = path.split("/");
    return mediaSteps.has(steps.findLast((step) => step !== "*") ?? "");
  }

  #readModel(bytes: number, start: string): void {
    const model = bytes > MOST_MODEL_LENGTH ? undefined : textOf(start);
    if (model === undefined || model.includes("\0"))
      this.#mistake ??= `model: expected text of at most ${MOST_MODEL_LENGTH} bytes, without NUL`;
    else this.#model = model;
  }

  /**
   * The largest bound in the call, times its prompts and choices. Undefined if any bound is not a positive whole number: the server may
   * reject it, treat it as unbounded, or parse a number from it ("5000"), whatever the other names say.
   */
  #maxTokens(): number | undefined {
    const bounds = this.#counts(this.#bounds);
    const lifting = this.#counts([LIFTING_BOUND]);
    const choices = this.#counts(choiceCounts);
    if (bounds.length === 0) return undefined;
    const most = Math.max(...bounds, ...lifting) * Math.max(1, ...choices) * Math.max(1, this.#prompts);
    return Number.isNaN(most) ? undefined : Math.min(MOST_TOKENS, most);
  }

  /** The values of those that are present; NaN for one that is not a positive whole number. */
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
