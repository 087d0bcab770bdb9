/** The result of migrating another limiter's configuration, and what all migrations share. */
import type { Rule } from "sluice";

/** The source of an attribute, in the format of `--attributes`. */
type Source =
  | { readonly header: string; readonly trusted?: true }
  | { readonly cookie: string }
  | { readonly claim: string };

export interface Migrated {
  readonly rules: readonly Rule[];
  readonly attributes: ReadonlyMap<string, Source>;
  /** Settings with another meaning here, or none: they need review. */
  readonly notes: readonly string[];
}

/** Collects the result; makes ids valid and unique. */
export class Migration implements Migrated {
  readonly rules: Rule[] = [];
  readonly attributes = new Map<string, Source>();
  readonly #notes = new Set<string>();
  readonly #ids = new Map<string, number>();

  get notes(): readonly string[] {
    return [...this.#notes];
  }

  note(text: string): void {
    this.#notes.add(text);
  }

  add(name: string, rule: Record<string, unknown>): void {
    // A copy, because YAML would write shared objects as aliases.
    this.rules.push(structuredClone({ id: this.#idFor(name), ...rule }) as unknown as Rule);
  }

  #idFor(name: string): string {
    const plain = name
      .toLowerCase()
      .replaceAll(/[^a-z0-9_.-]+/g, "-")
      .replace(/^[^a-z0-9]+/, "")
      .slice(0, 56);
    const id = plain === "" ? "rule" : plain;
    const seen = (this.#ids.get(id) ?? 0) + 1;
    this.#ids.set(id, seen);
    return seen === 1 ? id : `${id}-${seen}`;
  }
}

/** A match on a single value is written as the value itself. */
export function oneOrList(values: readonly string[]): string | readonly string[] {
  return values.length === 1 ? values[0]! : values;
}

/** Replaces characters that other limiters allow in headers but attribute names do not. */
export function attributeName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9_]+/g, "_");
}
