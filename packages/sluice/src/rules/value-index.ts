/**
 * Which entries may hold for a value of one attribute: found by the value itself, by its prefixes, by the blocks that hold an
 * address, or by its mere presence; never by trying one entry after another.
 */
import { type Address, type Cidr, leadingBits } from "./cidr.js";
import { addressOf, type Condition } from "./condition.js";
import type { EntryList } from "./entry-list.js";
import { PrefixTree } from "./prefix-tree.js";

export class ValueIndex {
  readonly #literals = new Map<string, number[]>();
  #prefixes: PrefixTree | undefined;
  #blocks: BlockIndex | undefined;
  readonly #present: number[] = [];

  /** Files an entry under each value that its condition accepts. */
  file(condition: Condition, entry: number): void {
    if (condition.anyValue) {
      this.#present.push(entry);
      return;
    }
    for (const literal of condition.literals) append(this.#literals, literal, entry);
    for (const glob of condition.globs) {
      this.#prefixes ??= new PrefixTree();
      this.#prefixes.file(glob.prefix, entry);
    }
    for (const cidr of condition.cidrs) {
      this.#blocks ??= new BlockIndex();
      this.#blocks.file(cidr, entry);
    }
  }

  /** Appends the entries in no order; an entry that accepts several values may come more than once. */
  find(value: string, found: EntryList): void {
    found.addAll(this.#present);
    const literal = this.#literals.get(value);
    if (literal !== undefined) found.addAll(literal);
    if (this.#prefixes !== undefined) this.#prefixes.find(value, found);
    if (this.#blocks !== undefined) {
      const address = addressOf(value);
      if (address !== undefined) this.#blocks.find(address, found);
    }
  }
}

/** One map per prefix length: a lookup asks as many maps as there are lengths in use, at most 33 or 129 by family. */
class BlockIndex {
  readonly #lengths: { readonly bytes: number; readonly bits: number; readonly blocks: Map<string, number[]> }[] = [];

  file({ first, bits }: Cidr, entry: number): void {
    let length = this.#lengths.find((known) => known.bytes === first.length && known.bits === bits);
    if (length === undefined) {
      length = { bytes: first.length, bits, blocks: new Map() };
      this.#lengths.push(length);
    }
    append(length.blocks, leadingBits(first, bits), entry);
  }

  find(address: Address, found: EntryList): void {
    for (let i = 0; i < this.#lengths.length; i++) {
      const { bytes, bits, blocks } = this.#lengths[i]!;
      const filed = bytes === address.length ? blocks.get(leadingBits(address, bits)) : undefined;
      if (filed !== undefined) found.addAll(filed);
    }
  }
}

function append(lists: Map<string, number[]>, name: string, entry: number): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [entry]);
  else list.push(entry);
}
