/**
 * The members seen in a log's objects, and predictions for the next line: which member follows which, and values that stay the same
 * (`"level":"info"`). In: members as they are read. Out: guesses, which the reader compares with the line.
 * A wrong guess costs time, but never changes the result. Bounded: only some unwanted names are learned, and no long values.
 */
import { Literal, viewOf } from "./byte-words.js";

/** A name to look for. `T`: its role; absent if only nested names have one. */
export interface ScanName<T> {
  readonly role?: T;
  readonly inner?: ReadonlyMap<string, ScanName<T>> | undefined;
}

/** Unwanted names learned per object. Caddy's entries have ten, those of services some dozens. */
const MOST_OTHERS = 64;
const LONGEST_OTHER = 64;
/** Length of a member with its value; longer ones rarely repeat. */
const LONGEST_STEADY = 512;
/** A value that lasts fewer lines than this was not worth learning. */
const FEW_LINES = 4;
/** After this many such values in a row, the member's values are ignored for a while. */
const MOST_CHANGES = 8;
const REST_LINES = 1_000;

export class JsonMember<T> {
  readonly name: Uint8Array;
  readonly role: T | undefined;
  readonly inner: JsonLevel<T> | undefined;
  /** `"name":` */
  readonly spelled = new Literal();
  /** `"name":value` and the byte after it, which terminates a number; empty while the value is not steady. */
  readonly whole = new Literal();
  /** The value of `whole`. */
  value: unknown;
  /** The member that followed it, in the last line that had both. */
  next: JsonMember<T> | undefined;
  #seenIn = 0;
  #learnedIn = 0;
  #changes = 0;
  #restsUntil = 0;

  constructor(name: Uint8Array, { role, inner }: ScanName<T>) {
    this.name = name;
    this.role = role;
    this.inner = inner && new JsonLevel(inner);
    const spelled = Buffer.concat([QUOTE, name, QUOTE_COLON]);
    this.spelled.set(viewOf(spelled), 0, spelled.length);
  }

  /** False if the line has had it already (a duplicate). */
  isFirstIn(line: number): boolean {
    if (this.#seenIn === line) return false;
    this.#seenIn = line;
    return true;
  }

  /** Learns from a member just read: the bytes from the quote of its name to the byte after its value. */
  learn(view: DataView, from: number, end: number, value: unknown, line: number): void {
    if (line < this.#restsUntil) return;
    if (this.whole.length > 0) {
      this.#changes = line - this.#learnedIn < FEW_LINES ? this.#changes + 1 : 0;
      if (this.#changes === MOST_CHANGES) {
        this.#changes = 0;
        this.#restsUntil = line + REST_LINES;
        this.#forget();
        return;
      }
    }
    if (end - from > LONGEST_STEADY) {
      this.#forget();
      return;
    }
    this.whole.set(view, from, end);
    this.value = value;
    this.#learnedIn = line;
  }

  #forget(): void {
    this.whole.length = 0;
    this.value = undefined;
  }
}

const QUOTE = Buffer.from('"');
const QUOTE_COLON = Buffer.from('":');

/** The members of one object. */
export class JsonLevel<T> {
  /** By length of the name. */
  readonly #members: JsonMember<T>[][] = [];
  #others = 0;
  /** The first member, in the last line that had any. */
  next: JsonMember<T> | undefined;

  constructor(names: ReadonlyMap<string, ScanName<T>>) {
    for (const [text, name] of names) this.#add(new JsonMember(Buffer.from(text), name));
  }

  #add(member: JsonMember<T>): JsonMember<T> {
    const { length } = member.name;
    while (this.#members.length <= length) this.#members.push([]);
    this.#members[length]!.push(member);
    return member;
  }

  /** Undefined for an unwanted name if there is no room to learn it. */
  find(bytes: Uint8Array, from: number, end: number): JsonMember<T> | undefined {
    const length = end - from;
    if (length < this.#members.length) {
      const alike = this.#members[length]!;
      for (let i = 0; i < alike.length; i++) if (isAt(bytes, from, alike[i]!.name)) return alike[i];
    }
    if (this.#others === MOST_OTHERS || length > LONGEST_OTHER) return undefined;
    this.#others++;
    return this.#add(new JsonMember(Uint8Array.from(bytes.subarray(from, end)), {}));
  }
}

export function isAt(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}
