/**
 * The HPACK Huffman code (RFC 7541, appendix B). The code is canonical: codes of equal length are consecutive in symbol order, so the code
 * lengths define the whole table.
 * Strings are decoded four bits at a time by a state machine, built on first use.
 */

/** Code lengths in bits of symbols 0 to 255, then EOS. */
// biome-ignore format: sixteen symbols a line, as the RFC's table can be read
const LENGTHS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];
const EOS = 256;

/**
 * Transitions of the state machine on four bits: the next state, and the symbol that they complete. Codes have at least five bits, so it is
 * at most one.
 */
interface Machine {
  /** By `state * 16 + bits`: the next state, or INVALID. */
  readonly next: Int16Array;
  /** By `state * 16 + bits`: the symbol, or NONE. */
  readonly symbols: Int16Array;
  /** Whether a string may end in a state: the bits since the last symbol are valid padding, fewer than eight and all ones. */
  readonly mayEnd: Uint8Array;
}

const INVALID = -1;
const NONE = -1;

let machine: Machine | undefined;

/** Throws a `RangeError` if the bytes are not valid Huffman code. */
export function decodeHuffman(bytes: Buffer, from: number, to: number): string {
  machine ??= build();
  const { next, symbols, mayEnd } = machine;
  // The shortest code has five bits.
  const decoded = Buffer.allocUnsafe(Math.floor(((to - from) * 8) / 5) + 1);
  let length = 0;
  let state = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at]!;
    for (let shift = 4; shift >= 0; shift -= 4) {
      const cell = state * 16 + ((byte >> shift) & 15);
      state = next[cell]!;
      if (state === INVALID) throw new RangeError("a header's Huffman code is invalid");
      const symbol = symbols[cell]!;
      if (symbol !== NONE) decoded[length++] = symbol;
    }
  }
  if (mayEnd[state] === 0) throw new RangeError("a header's Huffman code ends within a symbol");
  return decoded.toString("latin1", 0, length);
}

/** A node of the code tree; inner nodes are the states. */
interface Node {
  children: [Node | undefined, Node | undefined];
  symbol: number | undefined;
  state: number;
  depth: number;
  isAllOnes: boolean;
}

function build(): Machine {
  const root = tree();
  const states: Node[] = [];
  const number = (node: Node): void => {
    if (node.symbol !== undefined) return;
    node.state = states.length;
    states.push(node);
    for (const child of node.children) if (child !== undefined) number(child);
  };
  number(root);

  const next = new Int16Array(states.length * 16);
  const symbols = new Int16Array(states.length * 16).fill(NONE);
  for (const from of states) {
    for (let bits = 0; bits < 16; bits++) {
      const cell = from.state * 16 + bits;
      let node = from;
      for (let shift = 3; shift >= 0; shift--) {
        node = node.children[(bits >> shift) & 1]!;
        if (node.symbol === undefined) continue;
        symbols[cell] = node.symbol;
        node = root;
      }
      // EOS within a string is an error (section 5.2).
      next[cell] = symbols[cell] === EOS ? INVALID : node.state;
    }
  }
  const mayEnd = Uint8Array.from(states, ({ depth, isAllOnes }) => (isAllOnes && depth < 8 ? 1 : 0));
  return { next, symbols, mayEnd };
}

function tree(): Node {
  const root: Node = { children: [undefined, undefined], symbol: undefined, state: 0, depth: 0, isAllOnes: true };
  const ordered = LENGTHS.map((length, symbol) => ({ length, symbol })).sort(
    (a, b) => a.length - b.length || a.symbol - b.symbol,
  );
  let code = 0;
  let before = ordered[0]!.length;
  for (const { length, symbol } of ordered) {
    code *= 2 ** (length - before);
    before = length;
    insert(root, { code, length, symbol });
    code++;
  }
  return root;
}

function insert(root: Node, { code, length, symbol }: { code: number; length: number; symbol: number }): void {
  let node = root;
  for (let shift = length - 1; shift >= 0; shift--) {
    const bit = Math.floor(code / 2 ** shift) % 2 === 0 ? 0 : 1;
    node.children[bit] ??= {
      children: [undefined, undefined],
      symbol: undefined,
      state: 0,
      depth: node.depth + 1,
      isAllOnes: node.isAllOnes && bit === 1,
    };
    node = node.children[bit];
  }
  node.symbol = symbol;
}
