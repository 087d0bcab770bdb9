/**
 * Matches many globs in one pass over a value: a radix tree of texts and wildcards, in which globs with the same beginning share it. In: a
 * value. Out: the numbers of all globs that match it.
 *
 * Before a glob's first wildcard, the tree is walked as a trie. After a wildcard, all positions that the value so far can have reached are
 * followed at once (an NFA), so nothing backtracks. A step is one position and one character. Values come from attackers and globs from
 * editors: a value that needs more steps than the budget is left undecided.
 */
import type { EntryList } from "./entry-list.js";
import { GLOBSTAR, globTokens, SEGMENTS, STAR, type Wildcard } from "./glob.js";

interface Node {
  /** For a text: its characters from the parent's end to here. Empty for a wildcard. */
  label: string;
  readonly wildcard: Wildcard | undefined;
  /** The texts that follow, by their first character. */
  texts: Map<number, Node> | undefined;
  /** The wildcards that follow. */
  readonly wildcards: Node[];
  /** The globs that end here. */
  readonly globs: number[];
  /** For a wildcard: the step at which it was last reached. */
  reachedAt: number;
}

/** How many more steps one request may take. */
export interface Budget {
  steps: number;
}

const SLASH = 47;

const newNode = (label: string, wildcard?: Wildcard): Node => ({
  label,
  wildcard,
  texts: undefined,
  wildcards: [],
  globs: [],
  reachedAt: 0,
});

/** Positions reached: a node, and how much of its label was read (for SEGMENTS: 1 in the middle of a segment, otherwise 0). */
interface Places {
  readonly nodes: Node[];
  readonly offsets: number[];
  count: number;
}

const newPlaces = (): Places => ({ nodes: [], offsets: [], count: 0 });

// Matching is synchronous, so one set of buffers serves every call. They grow with the busiest value, at most to the size of the tree.
let reached = newPlaces();
let reachedNext = newPlaces();
let clock = 0;
let startedAt = 0;

export class GlobTree {
  readonly #root = newNode("");

  /** Each glob must be added only once. */
  add(pattern: string, glob: number): void {
    let node = this.#root;
    for (const token of globTokens(pattern))
      node = typeof token === "string" ? addText(node, token) : addWildcard(node, token);
    node.globs.push(glob);
  }

  /**
   * Appends all matching globs, in no particular order, possibly more than once. False if the budget was exceeded: some may then be
   * missing.
   */
  find(value: string, found: EntryList, budget: Budget): boolean {
    let node: Node | undefined = this.#root;
    let at = 0;
    while (node !== undefined && value.startsWith(node.label, at)) {
      at += node.label.length;
      budget.steps--;
      for (let i = 0; i < node.wildcards.length; i++) {
        if (!findBehind(node.wildcards[i]!, value, at, found, budget)) return false;
      }
      if (at === value.length) {
        found.addAll(node.globs);
        return true;
      }
      node = node.texts?.get(value.charCodeAt(at));
    }
    return true;
  }
}

/** The globs that continue with this wildcard, after the value was read up to `from`. */
function findBehind(wildcard: Node, value: string, from: number, found: EntryList, budget: Budget): boolean {
  if (isLast(wildcard)) {
    // Most globs end like this, and need no pass: `/v1/**` matches whatever follows, `/v1/*` whatever has no slash.
    if (wildcard.wildcard === GLOBSTAR || value.indexOf("/", from) === -1) found.addAll(wildcard.globs);
    return true;
  }
  reached.count = 0;
  startedAt = ++clock;
  enter(wildcard, reached, found);
  for (let at = from; at < value.length; at++) {
    if (reached.count === 0) return true;
    budget.steps -= reached.count;
    if (budget.steps < 0) return false;
    const code = value.charCodeAt(at);
    reachedNext.count = 0;
    clock++;
    for (let i = 0; i < reached.count; i++) step(reached.nodes[i]!, reached.offsets[i]!, code, found);
    [reached, reachedNext] = [reachedNext, reached];
  }
  for (let i = 0; i < reached.count; i++) {
    const node = reached.nodes[i]!;
    const isAtEnd = node.wildcard === undefined ? reached.offsets[i] === node.label.length : reached.offsets[i] === 0;
    if (isAtEnd) found.addAll(node.globs);
  }
  return true;
}

/** Moves from one position, by one character, to the positions of `reachedNext`. */
function step(node: Node, offset: number, code: number, found: EntryList): void {
  switch (node.wildcard) {
    case undefined:
      if (offset < node.label.length) {
        if (node.label.charCodeAt(offset) === code) read(node, offset + 1, found);
        return;
      }
      break;
    case SEGMENTS:
      if (code === SLASH) enter(node, reachedNext, found);
      // In the middle of a segment, what follows the wildcard cannot begin yet.
      else place(node, 1, reachedNext);
      if (offset === 1) return;
      break;
    case STAR:
      if (code !== SLASH) enter(node, reachedNext, found);
      break;
    default:
      enter(node, reachedNext, found);
  }
  const text = node.texts?.get(code);
  if (text !== undefined) read(text, 1, found);
}

/** A position within a text can be reached in only one way, so it is never there twice. */
function read(text: Node, offset: number, found: EntryList): void {
  place(text, offset, reachedNext);
  if (offset < text.label.length) return;
  for (let i = 0; i < text.wildcards.length; i++) enter(text.wildcards[i]!, reachedNext, found);
}

/** Reaches a wildcard, once per step, and those after it, because it may match nothing. */
function enter(wildcard: Node, places: Places, found: EntryList): void {
  if (wildcard.reachedAt === clock) return;
  // These match whatever follows.
  if (wildcard.wildcard === GLOBSTAR && wildcard.reachedAt < startedAt) found.addAll(wildcard.globs);
  wildcard.reachedAt = clock;
  if (!(wildcard.wildcard === GLOBSTAR && isLast(wildcard))) place(wildcard, 0, places);
  for (let i = 0; i < wildcard.wildcards.length; i++) enter(wildcard.wildcards[i]!, places, found);
}

function place(node: Node, offset: number, places: Places): void {
  places.nodes[places.count] = node;
  places.offsets[places.count++] = offset;
}

function isLast({ texts, wildcards, wildcard }: Node): boolean {
  return texts === undefined && wildcards.length === 0 && wildcard !== SEGMENTS;
}

function addWildcard(parent: Node, wildcard: Wildcard): Node {
  const known = parent.wildcards.find((node) => node.wildcard === wildcard);
  if (known !== undefined) return known;
  const node = newNode("", wildcard);
  parent.wildcards.push(node);
  return node;
}

function addText(parent: Node, text: string): Node {
  let node = parent;
  let at = 0;
  while (at < text.length) {
    node.texts ??= new Map();
    const child = node.texts.get(text.charCodeAt(at));
    if (child === undefined) {
      const leaf = newNode(text.slice(at));
      node.texts.set(text.charCodeAt(at), leaf);
      return leaf;
    }
    const shared = sharedLength(child.label, text, at);
    node = shared < child.label.length ? split(node, child, shared) : child;
    at += shared;
  }
  return node;
}

function sharedLength(label: string, text: string, at: number): number {
  let length = 0;
  while (length < label.length && label[length] === text[at + length]) length++;
  return length;
}

/** Inserts a node between parent and child, `length` characters into the child's label. */
function split(parent: Node, child: Node, length: number): Node {
  const between = newNode(child.label.slice(0, length));
  parent.texts!.set(child.label.charCodeAt(0), between);
  child.label = child.label.slice(length);
  between.texts = new Map([[child.label.charCodeAt(0), child]]);
  return between;
}
