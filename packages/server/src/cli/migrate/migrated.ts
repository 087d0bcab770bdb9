/** What a migration makes of another limiter's configuration, and the few things that every migration needs. */
import type { Rule } from "sluice";

/** Where an attribute comes from, as `--attributes` reads it. */
type Source =
  | { readonly header: string; readonly trusted?: true }
  | { readonly cookie: string }
  | { readonly claim: string };

export interface Migrated {
  readonly rules: readonly Rule[];
  readonly attributes: ReadonlyMap<string, Source>;
  /** What has another meaning here, or none: a person must look at it. */
  readonly notes: readonly string[];
}

/** Collects the result; ids are made valid and kept apart. */
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
    // A copy: YAML would write what two rules share as an alias.
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

/** A match of one value is the value itself. */
export function oneOrList(values: readonly string[]): string | readonly string[] {
  return values.length === 1 ? values[0]! : values;
}

/** Names of attributes have no characters that other limiters allow in headers. */
export function attributeName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9_]+/g, "_");
}
