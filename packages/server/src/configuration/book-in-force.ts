/**
 * The rules in force on this instance and where they came from. They change whole, and only to rules that have been validated;
 * whoever listens (the limiter) hears of every change, in order.
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

  holds({ version, digest }: { version: number; digest: string }): boolean {
    return this.#book.version === version && this.#digest === digest;
  }

  async swap(book: Book, { digest, source }: { digest: string; source: BookSource }): Promise<void> {
    this.#book = book;
    this.#digest = digest;
    this.#source = source;
    for (const listener of this.#listeners) {
      try {
        await listener(book);
      } catch (error) {
        this.#log.error("a listener refused the new rules", { version: book.version, error: String(error) });
      }
    }
  }

  onChange(listener: BookListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
