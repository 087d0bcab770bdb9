/**
 * Finds which of many matches hold for a request without trying each: every entry is filed under one of its conditions, the most selective
 * one, and only entries found there have their other conditions tried. Used for rules and for overrides. In: conditions by entry. Out:
 * entry numbers, in order.
 */

import type { Sliced, Stride } from "../time-slices.js";
import type { AttributeReader } from "./attribute-reader.js";
import { type Condition, holds } from "./condition.js";
import { EntryList } from "./entry-list.js";
import { ValueIndex } from "./value-index.js";

/** Presence is hardly selective: nearly every request has the attribute. */
const PRESENCE_COST = 1000;
/** A glob or a CIDR block matches more requests than a value does. */
const PATTERN_COST = 2;

export class MatchIndex {
  /** By slot; attributes that no entry is filed under are omitted. */
  readonly #bySlot: (ValueIndex | undefined)[] = [];
  readonly #slots: number[] = [];
  /** Entries without conditions. */
  readonly #always: number[] = [];
  /** By entry: the conditions that finding it does not prove. */
  readonly #unproved: (readonly Condition[])[] = [];

  static *filing(entries: readonly (readonly Condition[])[], stride: Stride): Sliced<MatchIndex> {
    const index = new MatchIndex();
    const needsChoice = entries.some((conditions) => conditions.length > 1);
    const crowds = needsChoice ? yield* countingCrowds(entries, stride) : new Map<string, number>();
    for (let entry = 0; entry < entries.length; entry++) {
      index.#file(entry, entries[entry]!, crowds);
      for (const { wanted } of entries[entry]!) stride.add(wanted.length);
      if (stride.isOver()) yield;
    }
    return index;
  }

  #file(entry: number, conditions: readonly Condition[], crowds: ReadonlyMap<string, number>): void {
    const chosen = cheapest(conditions, crowds);
    if (chosen === undefined) {
      this.#always.push(entry);
      this.#unproved.push(conditions);
      return;
    }
    this.#valueIndex(chosen.slot).file(chosen, entry);
    this.#unproved.push(without(chosen, conditions));
  }

  /** Fills `found` with the entries that hold for the last request read, in order. */
  find(request: AttributeReader, found: EntryList): void {
    this.#gather(request, found);
    const { entries, count } = found;
    let kept = 0;
    let last = -1;
    for (let i = 0; i < count; i++) {
      const entry = entries[i]!;
      // An entry that accepts several values may have been found by more than one of them.
      if (entry === last || !this.#isProved(entry, request)) continue;
      last = entry;
      entries[kept++] = entry;
    }
    found.count = kept;
  }

  /** The first entry that holds for the last request read, or -1. */
  first(request: AttributeReader): number {
    this.#gather(request, scratch);
    for (let i = 0; i < scratch.count; i++) {
      const entry = scratch.entries[i]!;
      if (this.#isProved(entry, request)) return entry;
    }
    return -1;
  }

  #gather(request: AttributeReader, found: EntryList): void {
    found.count = 0;
    found.addAll(this.#always);
    // Iterate over the shorter list: a request may have many attributes, and rules may use many.
    const filled = request.filled;
    const byRule = this.#slots.length <= filled.count;
    const slots = byRule ? this.#slots : filled.entries;
    const slotCount = byRule ? this.#slots.length : filled.count;
    for (let i = 0; i < slotCount; i++) {
      const slot = slots[i]!;
      const index = this.#bySlot[slot];
      const value = request.values[slot];
      if (index === undefined || value === undefined) continue;
      index.find(value, found);
      if (index.hasPatterns) index.findByPatterns(request.matchedPatterns(slot).matched, found);
    }
    request.spend(found.count);
    if (found.count > 1) found.sort();
  }

  #isProved(entry: number, request: AttributeReader): boolean {
    const conditions = this.#unproved[entry]!;
    request.spend(conditions.length);
    for (let i = 0; i < conditions.length; i++) {
      const condition = conditions[i]!;
      if (!holds(condition, request)) return false;
    }
    return true;
  }

  #valueIndex(slot: number): ValueIndex {
    let index = this.#bySlot[slot];
    if (index === undefined) {
      index = new ValueIndex();
      while (this.#bySlot.length <= slot) this.#bySlot.push(undefined);
      this.#bySlot[slot] = index;
      this.#slots.push(slot);
    }
    return index;
  }
}

const scratch = new EntryList();

const none: readonly Condition[] = [];

function without(proved: Condition, conditions: readonly Condition[]): readonly Condition[] {
  return conditions.length === 1 ? none : conditions.filter((condition) => condition !== proved);
}

/** How many entries would be found together at each place if all were filed under all of their conditions. */
function* countingCrowds(
  entries: readonly (readonly Condition[])[],
  stride: Stride,
): Sliced<ReadonlyMap<string, number>> {
  const crowds = new Map<string, number>();
  for (const conditions of entries) {
    for (const condition of conditions) {
      for (const place of placesOf(condition)) crowds.set(place.name, (crowds.get(place.name) ?? 0) + 1);
      stride.add(condition.wanted.length);
      if (stride.isOver()) yield;
    }
  }
  return crowds;
}

function cheapest(conditions: readonly Condition[], crowds: ReadonlyMap<string, number>): Condition | undefined {
  if (conditions.length <= 1) return conditions[0];
  let chosen: Condition | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const condition of conditions) {
    let cost = 0;
    for (const place of placesOf(condition)) cost = Math.max(cost, crowds.get(place.name)! * place.weight);
    if (cost < least) {
      least = cost;
      chosen = condition;
    }
  }
  return chosen;
}

/** The places of the index where an entry would be filed under a condition. */
function placesOf(condition: Condition): { name: string; weight: number }[] {
  const at = condition.slot;
  if (condition.anyValue) return [{ name: `${at} present`, weight: PRESENCE_COST }];
  return [
    ...condition.literals.map((literal) => ({ name: `${at} value ${literal}`, weight: 1 })),
    ...condition.patterns.map((pattern) => ({ name: `${at} pattern ${pattern}`, weight: PATTERN_COST })),
  ];
}
