/**
 * The rules in force on this instance and where they came from. They change whole, and only to rules that have been validated;
 * listeners (the limiter) get every change, in order.
 */
import type { Rule } from "sluice";
import type { ConfigurationLog } from "./configuration.js";

export interface Book {
  readonly rules: readonly Rule[];
  readonly version: number;
}

export type BookSource = "database" | "cache" | "file" | "snapshot";

/** May return a promise: a large book is compiled in slices, and the next change waits for it. */
export type BookListener = (book: Book) => void | Promise<void>;

export class BookInForce {
  readonly #log: ConfigurationLog;
  readonly #listeners = new Set<BookListener>();
  #book: Book = { rules: [], version: 0 };
  #digest: string | undefined;
  #source: BookSource | undefined;
  #refusal: string | undefined;

  constructor(log: ConfigurationLog) {
    this.#log = log;
  }

  get book(): Book {
    return this.#book;
  }

  /** Undefined until rules were loaded. */
  get source(): BookSource | undefined {
    return this.#source;
  }

  set source(source: BookSource) {
    this.#source = source;
  }

  /** Why a listener did not take the book: then it goes on with the rules that it has. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  holds({ version, digest }: { version: number; digest: string }): boolean {
    return this.#book.version === version && this.#digest === digest;
  }

  async swap(book: Book, { digest, source }: { digest: string; source: BookSource }): Promise<void> {
    this.#book = book;
    this.#digest = digest;
    this.#source = source;
    this.#refusal = undefined;
    for (const listener of this.#listeners) {
      try {
        await listener(book);
      } catch (error) {
        this.#refusal = `version ${book.version} is not enforced: ${error instanceof Error ? error.message : String(error)}`;
        this.#log.error("the new rules were refused by a listener, which keeps its old ones", { why: this.#refusal });
      }
    }
  }

  onChange(listener: BookListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
