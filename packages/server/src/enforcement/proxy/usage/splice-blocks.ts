/** Replaces a few bytes without copying the rest. Pure. */

/** Replaces bytes `start` to `end` by `text`. */
export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export function splicedBytes(bytes: number, splice: Splice | undefined): number {
  return splice === undefined ? bytes : bytes - (splice.end - splice.start) + Buffer.byteLength(splice.text);
}

export function spliceBlocks(blocks: readonly Buffer[], splice: Splice | undefined): readonly Buffer[] {
  if (splice === undefined) return blocks;
  const { start, end, text } = splice;
  const before: Buffer[] = [];
  const behind: Buffer[] = [];
  let at = 0;
  for (const block of blocks) {
    if (at < start) before.push(block.subarray(0, start - at));
    if (at + block.length > end) behind.push(block.subarray(Math.max(0, end - at)));
    at += block.length;
  }
  return [...before, Buffer.from(text), ...behind];
}
