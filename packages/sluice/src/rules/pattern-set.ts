/**
 * Every glob and CIDR block that rules and overrides match one attribute against. Each is matched once per request, however many conditions
 * use it, and all of them together. In: the attribute's value. Out: the numbers of the patterns that match.
 */
import { type Address, type Cidr, leadingBits, parseAddress, parseCidr } from "./cidr.js";
import { EntryList } from "./entry-list.js";
import { type Budget, GlobTree } from "./glob-tree.js";

export class PatternSet {
  /** The patterns that matched the last value read, each once. */
  readonly matched = new EntryList();
  readonly #numbers = new Map<string, number>();
  readonly #globs = new GlobTree();
  readonly #blocks = new BlockIndex();
  #hasGlobs = false;
  #hasBlocks = false;
  /** By pattern: the last reading in which it matched. */
  readonly #matchedIn: number[] = [];
  #reading = 0;

  /** The number of a pattern; a known one keeps its number. */
  add(pattern: string, kind: "glob" | "block"): number {
    const known = this.#numbers.get(pattern);
    if (known !== undefined) return known;
    const number = this.#matchedIn.length;
    this.#numbers.set(pattern, number);
    this.#matchedIn.push(0);
    if (kind === "glob") {
      this.#hasGlobs = true;
      this.#globs.add(pattern, number);
    } else {
      this.#hasBlocks = true;
      this.#blocks.add(parseCidr(pattern)!, number);
    }
    return number;
  }

  /** False if the budget was exceeded. */
  read(value: string, budget: Budget): boolean {
    const { matched } = this;
    const reading = ++this.#reading;
    matched.count = 0;
    if (this.#hasBlocks) {
      const address = parseAddress(value);
      if (address !== undefined) this.#blocks.find(address, matched);
    }
    const isDecided = !this.#hasGlobs || this.#globs.find(value, matched, budget);
    budget.steps -= matched.count;
    let kept = 0;
    for (let i = 0; i < matched.count; i++) {
      const pattern = matched.entries[i]!;
      if (this.#matchedIn[pattern] === reading) continue;
      this.#matchedIn[pattern] = reading;
      matched.entries[kept++] = pattern;
    }
    matched.count = kept;
    return isDecided && budget.steps >= 0;
  }

  /** Whether a pattern matched the last value read. */
  hasMatched(pattern: number): boolean {
    return this.#matchedIn[pattern] === this.#reading;
  }
}

/** One map per prefix length: a lookup probes as many maps as there are lengths in use, at most 33 or 129 by address family. */
class BlockIndex {
  readonly #lengths: { readonly bytes: number; readonly bits: number; readonly blocks: Map<string, number[]> }[] = [];

  add({ first, bits }: Cidr, number: number): void {
    let length = this.#lengths.find((known) => known.bytes === first.length && known.bits === bits);
    if (length === undefined) {
      length = { bytes: first.length, bits, blocks: new Map() };
      this.#lengths.push(length);
    }
    const name = leadingBits(first, bits);
    // Several notations of one block are separate patterns.
    const spelled = length.blocks.get(name);
    if (spelled === undefined) length.blocks.set(name, [number]);
    else spelled.push(number);
  }

  find(address: Address, found: EntryList): void {
    for (let i = 0; i < this.#lengths.length; i++) {
      const { bytes, bits, blocks } = this.#lengths[i]!;
      const numbers = bytes === address.length ? blocks.get(leadingBits(address, bits)) : undefined;
      if (numbers !== undefined) found.addAll(numbers);
    }
  }
}
