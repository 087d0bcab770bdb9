/**
 * Extracts what a call asks for from a form (`multipart/form-data`, RFC 7578) as its bytes arrive: transcriptions and image edits carry
 * their model beside the file. In: the content type and the body's bytes. Out: facts of the call, or the mistake for which it is refused.
 * Keeps nothing of the body but the start of short fields.
 * Strict, because parsers differ in what they accept: a form that two of them read differently could be counted as one model and served as
 * another. So: no preamble, no epilogue, CRLF line ends, no repeated headers, and each relevant field at most once, as text.
 */
import { isReadAlike } from "./body-charset.js";
import type { CallFacts } from "./call-reader.js";
import { tokensIn } from "./usage-reader.js";

const CRLF = Buffer.from("\r\n");
const HEADERS_END = Buffer.from("\r\n\r\n");
const MOST_HEADER_BYTES = 8 * 1024;
const MOST_FIELD_BYTES = 256;
const MOST_PARTS = 1_000;
/** A file counts the same as in a JSON call. */
const FILE_TOKENS = 1_000;

/** A single boundary, of characters that no parser requires to be quoted. */
const formType =
  /^multipart\/form-data *(?:; *charset="?utf-8"? *)?; *boundary=(?:"([\w'+./:=?-]{1,70})"|([\w'+.-]{1,70})) *(?:; *charset="?utf-8"?)?$/i;
/** The file's name may contain escapes; a field's may not, and .NET writes it unquoted. */
const disposition =
  /^form-data; *name=(?:"([^"\\%\r\n]*)"|([\w.[\]-]+))((?:; *filename=(?:"(?:[^"\\\r\n]|\\.)*"|[^\s";,]+))?(?:; *filename\*=[^\s";,]+)?)$/i;
const header = /^([\w-]+):[ \t]*([^\r\n]*)$/;
/** Servers disagree on whether to decode any other encoding. */
const plainEncoding = /^(?:7bit|8bit|binary)$/i;
/** Sets the charset of all fields, for servers that support it (RFC 7578, section 4.6). */
const CHARSET_FIELD = "_charset_";
const readNames = new Set(["model", "stream"]);
/** Form values that servers treat as false. */
const noStream = new Set(["", "false", "0", "off", "no", "f", "n"]);

type At = "delimiter" | "headers" | "body" | "end";

export class MultipartCall {
  mistake: string | undefined;
  readonly #boundary: Buffer;
  readonly #fields = new Map<string, string>();
  #at: At = "delimiter";
  /**
   * Input that cannot be parsed yet: shorter than a delimiter or a header. Starts with a line end, as the first delimiter has none before
   * it.
   */
  #rest: Buffer;
  #parts = 0;
  #hasLineEnd = false;
  #isFile = false;
  /** The current part's name, if it is one that is read. */
  #name: string | undefined;
  #value = "";
  /** Includes the line end before the content. */
  #partBytes = 0;
  /** From the part's own header: some servers read so many bytes and ignore the boundary. */
  #announcedBytes: number | undefined;
  #textBytes = 0;
  #files = 0;

  constructor(contentType: string) {
    const [, quoted, plain] = formType.exec(contentType.trim()) ?? [];
    const boundary = quoted ?? plain;
    if (boundary === undefined)
      this.mistake = "content-type: expected multipart/form-data with one boundary, of letters, digits and - ' + . _";
    this.#boundary = Buffer.from(`\r\n--${boundary}`);
    this.#rest = CRLF;
  }

  push(chunk: Buffer): void {
    if (this.mistake !== undefined) return;
    let bytes: Buffer = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    // Some clients send a line end before the first boundary.
    if (this.#parts === 0 && !this.#hasLineEnd && bytes.subarray(0, HEADERS_END.length).equals(HEADERS_END)) {
      this.#hasLineEnd = true;
      bytes = bytes.subarray(CRLF.length);
    }
    for (;;) {
      const left: Buffer | undefined = this.#step(bytes);
      if (left === undefined || this.mistake !== undefined) break;
      bytes = left;
    }
  }

  /** Call this after the last byte. */
  end(): CallFacts | undefined {
    if (this.mistake === undefined && (this.#at !== "end" || !isLineEnd(this.#rest)))
      this.mistake = "body: expected a form that ends with its boundary";
    if (this.mistake !== undefined) return undefined;
    return {
      model: this.#fields.get("model"),
      isStream: !noStream.has((this.#fields.get("stream") ?? "").toLowerCase()),
      maxTokens: undefined,
      promptTokens: tokensIn(this.#textBytes) + this.#files * FILE_TOKENS,
      isBackground: false,
      askForUsage: undefined,
    };
  }

  /** Consumes one token. Returns the remaining bytes; undefined if it needs more, or parsing has ended. */
  #step(bytes: Buffer): Buffer | undefined {
    if (this.#at === "delimiter") return this.#delimiter(bytes);
    if (this.#at === "headers") return this.#headers(bytes);
    if (this.#at === "body") return this.#body(bytes);
    // A line end may follow the last boundary.
    this.#rest = bytes;
    if (bytes.length > CRLF.length) this.mistake = "body: expected nothing behind the last boundary";
    return undefined;
  }

  #delimiter(bytes: Buffer): Buffer | undefined {
    const { length } = this.#boundary;
    if (bytes.length < length + CRLF.length) return this.#wait(bytes);
    const behind = bytes.toString("latin1", length, length + CRLF.length);
    if (!bytes.subarray(0, length).equals(this.#boundary) || (behind !== "\r\n" && behind !== "--")) {
      this.mistake = "body: expected its boundary on a line of its own";
      return undefined;
    }
    this.#at = behind === "--" ? "end" : "headers";
    if (++this.#parts > MOST_PARTS) this.mistake = `body: expected at most ${MOST_PARTS} parts`;
    return bytes.subarray(length + CRLF.length);
  }

  #headers(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf(HEADERS_END);
    if (end === -1 ? bytes.length > MOST_HEADER_BYTES : end > MOST_HEADER_BYTES) {
      this.mistake = `body: expected at most ${MOST_HEADER_BYTES} bytes of a part's headers`;
      return undefined;
    }
    if (end === -1) return this.#wait(bytes);
    this.#beginPart(bytes.toString("utf8", 0, end));
    this.#at = "body";
    this.#partBytes = 0;
    // Keep the line end before the body, so that a boundary right at its start is found.
    return bytes.subarray(end + CRLF.length);
  }

  #beginPart(text: string): void {
    const fields = new Map<string, string>();
    for (const line of text.split("\r\n")) {
      const [, name, value] = header.exec(line) ?? [];
      const known = name?.toLowerCase();
      if (known === undefined || value === undefined || value.includes("\n") || fields.has(known)) {
        this.mistake = "body: expected each header of a part once, on a line of its own";
        return;
      }
      fields.set(known, value.trim());
    }
    const [, quoted, bare, file] = disposition.exec(fields.get("content-disposition") ?? "") ?? [];
    const name = quoted ?? bare;
    if (name === undefined) {
      this.mistake = 'body: expected parts with content-disposition: form-data; name="…"';
      return;
    }
    const length = fields.get("content-length");
    this.#announcedBytes = length === undefined ? undefined : /^\d+$/.test(length) ? Number(length) : Number.NaN;
    this.#isFile = file !== "";
    this.#files += this.#isFile ? 1 : 0;
    this.#name = undefined;
    this.#value = "";
    const plainName = name.toLowerCase().trim();
    if (plainName === CHARSET_FIELD) this.mistake = `${name}: expected no such field; texts are UTF-8`;
    const meant = readNames.has(name) ? name : [...readNames].find((known) => known === plainName);
    if (meant === undefined) return;
    if (meant !== name) this.mistake = `${name}: expected ${meant}, in these letters`;
    else if (this.#fields.has(name)) this.mistake = `${name}: expected once, got twice`;
    else if (this.#isFile) this.mistake = `${name}: expected text, got a file`;
    else if (!plainEncoding.test(fields.get("content-transfer-encoding") ?? "binary"))
      this.mistake = `${name}: expected text without a transfer encoding`;
    else if (!isReadAlike(fields.get("content-type") ?? "")) this.mistake = `${name}: expected text in UTF-8`;
    else this.#name = name;
  }

  #body(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf(this.#boundary);
    // The end of the chunk may be the start of a boundary.
    const known = end === -1 ? Math.max(0, bytes.length - this.#boundary.length + 1) : end;
    this.#take(bytes.subarray(0, known));
    if (end === -1) return this.#wait(bytes.subarray(known));
    if (this.#partBytes === 0) {
      // Some parsers would see the end of an empty part here, others its content.
      this.mistake = "body: expected a line end between the headers of a part and its boundary";
      return undefined;
    }
    if (this.#announcedBytes !== undefined && this.#announcedBytes !== this.#partBytes - CRLF.length) {
      this.mistake = "body: expected parts as long as their content-length says";
      return undefined;
    }
    if (this.#name !== undefined) this.#fields.set(this.#name, this.#value);
    this.#at = "delimiter";
    return bytes.subarray(end);
  }

  #take(bytes: Buffer): void {
    const content = bytes.subarray(Math.max(0, CRLF.length - this.#partBytes));
    this.#partBytes += bytes.length;
    if (!this.#isFile) this.#textBytes += content.length;
    if (this.#name === undefined) return;
    this.#value += content.toString("latin1");
    if (this.#value.length > MOST_FIELD_BYTES || /[^\x20-\x7e]/.test(this.#value))
      this.mistake = `${this.#name}: expected text of at most ${MOST_FIELD_BYTES} bytes, in ASCII`;
  }

  #wait(bytes: Buffer): undefined {
    // A copy, because a slice would keep the whole chunk in memory.
    this.#rest = Buffer.from(bytes);
    return undefined;
  }
}

function isLineEnd(bytes: Buffer): boolean {
  return bytes.length === 0 || bytes.equals(CRLF);
}
