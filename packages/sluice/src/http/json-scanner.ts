/**
 * Scans JSON as its bytes arrive, without building it: reports keys, strings and scalars to a visitor, with their path. Memory is bounded
 * whatever the document contains: 256 levels, 256 bytes of a key, the first kilobyte of a string. The grammar is strict (RFC 8259), so that
 * no server behind the proxy can read a different document from the same bytes: no comments, no single quotes, no NaN, no byte order mark,
 * no encoding other than UTF-8.
 */

interface JsonVisitor {
  /** A member's name. It is already the last step of the path. */
  key?(): void;
  /** An object or an array begins. */
  open?(kind: "object" | "array"): void;
  /** A number, `true`, `false` or `null`, as written. */
  literal?(text: string): void;
  /** `bytes`: its length between the quotes. `start`: its first kilobyte, as written (Latin-1: one character per byte). */
  string?(bytes: number, start: string): void;
}

const MOST_LEVELS = 256;
const MOST_KEY_BYTES = 256;
const MOST_START_BYTES = 1_024;
/** A number with more digits is not one that anyone counts by. */
const MOST_LITERAL_BYTES = 1_024;

const literalPattern = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/;

type Expecting = "value" | "value-or-end" | "key" | "key-or-end" | "colon" | "comma-or-end" | "nothing";
type Within = "structure" | "string" | "escape" | "literal";

/** No escapes, nothing beyond ASCII, and nothing that a JSON pointer escapes. */
const plainKey = /^[\w .:-]*$/;
/** Stands for keys that nobody looks for. */
const UNNAMED = "…";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export class JsonScanner {
  /** Why the bytes are not JSON; undefined as long as they may be. */
  mistake: string | undefined;
  /** Bytes pushed before the current chunk. */
  #offset = 0;
  #tokenStart = 0;
  #tokenEnd = 0;
  #expecting: Expecting = "value";
  #within: Within = "structure";
  #isKey = false;
  /** The current token, as far as it is kept. */
  #text = "";
  #bytes = 0;
  readonly #kinds: ("object" | "array")[] = [];
  /** One step per level: the member's name, or `*` for the elements of an array. */
  readonly #steps: string[] = [];
  readonly #visitor: JsonVisitor;

  constructor(visitor: JsonVisitor) {
    this.#visitor = visitor;
  }

  /** The steps to the reported value, as a JSON pointer without its first slash; `*` for the elements of an array. */
  get path(): string {
    return this.#steps.join("/");
  }

  /** The last step: cheaper to get than the path. */
  get lastStep(): string {
    return this.#steps.at(-1) ?? "";
  }

  get depth(): number {
    return this.#steps.length;
  }

  /** Bytes so far of an unfinished string, which `string` will report at its end; 0 outside a string, and within a key. */
  get openBytes(): number {
    const isOpen = this.#within === "string" || this.#within === "escape";
    return isOpen && !this.#isKey && this.mistake === undefined ? this.#bytes : 0;
  }

  /** Position of the reported token in everything pushed: its first byte, and the one after its last. */
  get span(): { start: number; end: number } {
    return { start: this.#tokenStart, end: this.#tokenEnd };
  }

  /**
   * Whether one whole document was read. Ends a number that is the whole document. A number cut off within an object or array is not
   * reported: its digits so far are another number.
   */
  end(): boolean {
    if (this.#within === "literal" && this.#kinds.length === 0) this.#endLiteral(this.#offset);
    if (this.mistake === undefined && (this.#expecting !== "nothing" || this.#within !== "structure"))
      this.mistake = "it ends too early";
    return this.mistake === undefined;
  }

  /** Prepares for the next document. */
  reset(): void {
    this.mistake = undefined;
    this.#offset = 0;
    this.#expecting = "value";
    this.#within = "structure";
    this.#kinds.length = 0;
    this.#steps.length = 0;
  }

  push(chunk: Buffer, from = 0, to = chunk.length): void {
    // A chunk may contain many documents; offsets count from the start of this one.
    const base = this.#offset - from;
    let i = from;
    while (i < to && this.mistake === undefined) {
      if (this.#within === "string") i = this.#readString(chunk, i, to, base);
      else if (this.#within === "escape") {
        // The escaped byte is kept as it is: all that matters is that a quote after a backslash does not end the string.
        this.#keep(chunk, i, i + 1);
        this.#within = "string";
        i++;
      } else if (this.#within === "literal") i = this.#readLiteral(chunk, i, to, base);
      else {
        this.#readStructure(chunk[i]!, base + i);
        i++;
      }
    }
    this.#offset += to - from;
  }

  #readString(chunk: Buffer, from: number, to: number, base: number): number {
    let i = from;
    while (i < to && chunk[i] !== QUOTE && chunk[i] !== BACKSLASH) i++;
    this.#keep(chunk, from, i);
    if (i === to) return i;
    if (chunk[i] === BACKSLASH) {
      this.#keep(chunk, i, i + 1);
      this.#within = "escape";
    } else this.#endString(base + i + 1);
    return i + 1;
  }

  /** Counts the bytes, and keeps the first ones. */
  #keep(chunk: Buffer, from: number, to: number): void {
    const room = MOST_START_BYTES - this.#text.length;
    this.#bytes += to - from;
    if (room > 0 && to > from) this.#text += chunk.toString("latin1", from, Math.min(to, from + room));
  }

  #endString(end: number): void {
    this.#within = "structure";
    this.#tokenEnd = end;
    if (!this.#isKey) {
      this.#visitor.string?.(this.#bytes, this.#text);
      this.#endValue();
      return;
    }
    // Nobody looks for a longer key; its beginning must not be mistaken for one.
    const step = this.#bytes > MOST_KEY_BYTES ? UNNAMED : stepOf(this.#text);
    if (step === undefined) {
      // Lenient parsers drop a backslash or a byte that they do not know: `m\odel` is `model` to them.
      this.mistake = `the name ${describe(this.#text)} is no text`;
      return;
    }
    this.#steps[this.#steps.length - 1] = step;
    this.#expecting = "colon";
    this.#visitor.key?.();
  }

  #readLiteral(chunk: Buffer, from: number, to: number, base: number): number {
    let i = from;
    while (i < to && isLiteralByte(chunk[i]!)) i++;
    this.#keep(chunk, from, i);
    // Check now rather than at its end: it may have none.
    if (i < to || this.#bytes >= MOST_LITERAL_BYTES) this.#endLiteral(base + i);
    return i;
  }

  #endLiteral(end: number): void {
    this.#within = "structure";
    this.#tokenEnd = end;
    if (this.#bytes >= MOST_LITERAL_BYTES || !literalPattern.test(this.#text)) {
      this.mistake = `${describe(this.#text)} is no value`;
      return;
    }
    this.#visitor.literal?.(this.#text);
    this.#endValue();
  }

  #readStructure(byte: number, at: number): void {
    switch (byte) {
      case 0x20:
      case 0x0a:
      case 0x0d:
      case 0x09:
        break;
      case QUOTE:
        this.#beginString(at);
        break;
      case 0x7b:
        this.#open("object", at);
        break;
      case 0x5b:
        this.#open("array", at);
        break;
      case 0x7d:
        this.#close("object", at);
        break;
      case 0x5d:
        this.#close("array", at);
        break;
      case 0x3a:
        if (this.#expecting === "colon") this.#expecting = "value";
        else this.#refuse(byte, at);
        break;
      case 0x2c:
        if (this.#expecting !== "comma-or-end") this.#refuse(byte, at);
        else this.#expecting = this.#kinds.at(-1) === "object" ? "key" : "value";
        break;
      default:
        if (this.#expectsValue() && isLiteralByte(byte)) this.#beginLiteral(byte, at);
        else this.#refuse(byte, at);
    }
  }

  #beginLiteral(byte: number, at: number): void {
    this.#begin("literal", at);
    this.#text = String.fromCharCode(byte);
    this.#bytes = 1;
  }

  #begin(within: Within, at: number): void {
    this.#within = within;
    this.#tokenStart = at;
    this.#text = "";
    this.#bytes = 0;
  }

  #beginString(at: number): void {
    this.#isKey = this.#expecting === "key" || this.#expecting === "key-or-end";
    if (this.#isKey || this.#expectsValue()) this.#begin("string", at);
    else this.#refuse(QUOTE, at);
  }

  #open(kind: "object" | "array", at: number): void {
    if (!this.#expectsValue()) {
      this.#refuse(kind === "object" ? 0x7b : 0x5b, at);
      return;
    }
    if (this.#kinds.length === MOST_LEVELS) {
      this.mistake = `it is nested deeper than ${MOST_LEVELS} levels`;
      return;
    }
    this.#tokenStart = at;
    this.#tokenEnd = at + 1;
    this.#visitor.open?.(kind);
    this.#kinds.push(kind);
    this.#steps.push(kind === "array" ? "*" : "");
    this.#expecting = kind === "object" ? "key-or-end" : "value-or-end";
  }

  #close(kind: "object" | "array", at: number): void {
    const mayEnd =
      this.#expecting === "comma-or-end" || this.#expecting === `${kind === "object" ? "key" : "value"}-or-end`;
    if (!mayEnd || this.#kinds.at(-1) !== kind) {
      this.#refuse(kind === "object" ? 0x7d : 0x5d, at);
      return;
    }
    this.#kinds.pop();
    this.#steps.pop();
    this.#endValue();
  }

  #endValue(): void {
    this.#expecting = this.#kinds.length === 0 ? "nothing" : "comma-or-end";
  }

  #expectsValue(): boolean {
    return this.#expecting === "value" || this.#expecting === "value-or-end";
  }

  #refuse(byte: number, at: number): void {
    this.mistake = `${describe(String.fromCharCode(byte))} at byte ${at} is not expected there`;
  }
}

/** Undefined if it is not a valid JSON string. */
function stepOf(written: string): string | undefined {
  // Nearly every key; decoding would take longer than everything else.
  if (plainKey.test(written)) return written;
  // As in a JSON pointer (RFC 6901): a name with a slash must not look like two steps.
  return textOf(written)?.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Decodes a string as written between its quotes; undefined if that is not a valid JSON string. */
export function textOf(written: string): string | undefined {
  try {
    const text: unknown = JSON.parse(`"${utf8.decode(Buffer.from(written, "latin1"))}"`);
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Letters, digits, `+`, `-` and `.`: whether they form a value is checked at the end. */
function isLiteralByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    (byte >= 0x41 && byte <= 0x5a) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e
  );
}

function describe(text: string): string {
  return JSON.stringify(text.length > 32 ? `${text.slice(0, 32)}…` : text);
}
