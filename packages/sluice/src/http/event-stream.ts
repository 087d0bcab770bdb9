/**
 * Parses server-sent events as their bytes arrive (WHATWG HTML, section 9.2.6): lines that end in LF, CR or CRLF, several data lines per
 * event, chunk boundaries anywhere. Nothing is buffered: data is passed on in the pieces in which it arrived.
 */

interface EventVisitor {
  /** A piece of the event's data: bytes `from` to `to` of the chunk. A line feed is passed between two data lines. */
  data(chunk: Buffer, from: number, to: number): void;
  /**
   * A blank line ended the event, just before byte `next` of the chunk. `byReturn`: it ended with a CR, and a following LF belongs to it.
   */
  end(next: number, byReturn: boolean): void;
  /** Bytes of a line that is neither a standard field nor a comment: the body may not be an event stream at all. */
  stray?(bytes: number): void;
}

const CR = 0x0d;
const LF = 0x0a;
const COLON = 0x3a;
const SPACE = 0x20;
const FIELD = Buffer.from("data");
/** All standard fields, by their first byte. */
const fields: ReadonlyMap<number, Buffer> = new Map(
  [FIELD, ...["event", "id", "retry"].map((name) => Buffer.from(name))].map((name) => [name[0]!, name]),
);
const LINE_FEED = Buffer.from("\n");
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

type Place = "mark" | "start" | "name" | "space" | "data" | "skipped" | "stray";

export class EventStream {
  readonly #visitor: EventVisitor;
  #place: Place = "mark";
  /** How many bytes of the byte order mark, or of the field's name, have matched so far. */
  #matched = 0;
  /** The field that the line may begin with. */
  #field: Buffer = FIELD;
  /** The previous byte was a CR: an LF now belongs to the same line end. */
  #afterReturn = false;
  #hasData = false;

  constructor(visitor: EventVisitor) {
    this.#visitor = visitor;
  }

  push(chunk: Buffer): void {
    let i = 0;
    while (i < chunk.length) {
      const byte = chunk[i]!;
      if (this.#afterReturn) {
        this.#afterReturn = false;
        if (byte === LF) {
          i++;
          continue;
        }
      }
      if (this.#place === "data" || this.#place === "skipped" || this.#place === "stray") i = this.#readRest(chunk, i);
      else if (byte === LF || byte === CR) this.#endLine(byte, ++i);
      else if (this.#readBegin(byte)) i++;
    }
  }

  /** Reads to the end of the line, or of the chunk. */
  #readRest(chunk: Buffer, from: number): number {
    const end = lineEnd(chunk, from);
    if (this.#place === "data" && end > from) this.#visitor.data(chunk, from, end);
    else if (this.#place === "stray") this.#visitor.stray?.(end - from);
    if (end === chunk.length) return end;
    this.#endLine(chunk[end]!, end + 1);
    return end + 1;
  }

  /** Returns false if the byte belongs to what comes next, and must be read again. */
  #readBegin(byte: number): boolean {
    switch (this.#place) {
      case "mark":
        if (byte === BYTE_ORDER_MARK[this.#matched] && this.#matched < BYTE_ORDER_MARK.length) {
          this.#matched++;
          return true;
        }
        this.#matched = 0;
        this.#place = "start";
        return false;
      case "start":
        this.#matched = 0;
        this.#field = fields.get(byte) ?? FIELD;
        this.#place = byte === COLON ? "skipped" : "name";
        return false;
      case "name":
        if (byte === this.#field[this.#matched]) this.#matched++;
        else if (this.#matched < this.#field.length || byte !== COLON) this.#beginStray();
        else if (this.#field === FIELD) this.#beginData("space");
        else this.#place = "skipped";
        return true;
      default:
        // One space after the colon is not part of the data.
        this.#place = "data";
        return byte === SPACE;
    }
  }

  #beginData(place: Place): void {
    if (this.#hasData) this.#visitor.data(LINE_FEED, 0, 1);
    this.#hasData = true;
    this.#place = place;
  }

  /** Counts what matched so far, and the byte that did not. */
  #beginStray(): void {
    this.#visitor.stray?.(this.#matched + 1);
    this.#place = "stray";
  }

  #endLine(byte: number, next: number): void {
    const isBlank = this.#place === "start" || this.#place === "mark";
    // A line with only the field's name means empty data.
    if (this.#place === "name") {
      if (this.#matched < this.#field.length) this.#visitor.stray?.(this.#matched);
      else if (this.#field === FIELD) this.#beginData("data");
    }
    this.#place = "start";
    this.#matched = 0;
    this.#afterReturn = byte === CR;
    if (!isBlank) return;
    this.#hasData = false;
    this.#visitor.end(next, byte === CR);
  }
}

function lineEnd(chunk: Buffer, from: number): number {
  let i = from;
  while (i < chunk.length && chunk[i] !== LF && chunk[i] !== CR) i++;
  return i;
}
