/**
 * A radix tree: lists of numbers filed under prefixes, found by all the prefixes that a text begins with. A lookup costs the
 * length of the text at most, however many prefixes are filed. Used for globs, by what stands before their first wildcard.
 */
import type { EntryList } from "./entry-list.js";

interface Node {
  /** The characters between the parent and this node. */
  label: string;
  readonly filed: number[];
  readonly children: Map<number, Node>;
}

const newNode = (label: string): Node => ({ label, filed: [], children: new Map() });

export class PrefixTree {
  readonly #root = newNode("");

  file(prefix: string, number: number): void {
    let node = this.#root;
    let at = 0;
    while (at < prefix.length) {
      const child = node.children.get(prefix.charCodeAt(at));
      if (child === undefined) {
        const leaf = newNode(prefix.slice(at));
        node.children.set(prefix.charCodeAt(at), leaf);
        node = leaf;
        break;
      }
      const shared = sharedLength(child.label, prefix, at);
      node = shared < child.label.length ? split(node, child, shared) : child;
      at += shared;
    }
    node.filed.push(number);
  }

  /** Appends every number filed under a prefix of the text, shortest prefix first. */
  find(text: string, found: EntryList): void {
    let node: Node | undefined = this.#root;
    let at = 0;
    while (node !== undefined && text.startsWith(node.label, at)) {
      at += node.label.length;
      found.addAll(node.filed);
      if (at === text.length) return;
      node = node.children.get(text.charCodeAt(at));
    }
  }
}

function sharedLength(label: string, prefix: string, at: number): number {
  let length = 0;
  while (length < label.length && label[length] === prefix[at + length]) length++;
  return length;
}

/** Puts a node between parent and child, `length` characters down the child's label. */
function split(parent: Node, child: Node, length: number): Node {
  const between = newNode(child.label.slice(0, length));
  parent.children.set(child.label.charCodeAt(0), between);
  child.label = child.label.slice(length);
  between.children.set(child.label.charCodeAt(0), child);
  return between;
}
