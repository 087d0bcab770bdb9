/**
 * HPACK encoder for response headers. Every field is a literal without indexing: common blocks are then constant bytes, encoded once, which
 * references to a changing dynamic table would not allow.
 */

/** Static table: the index of the name `:status`, and the index byte for `:status: 200`. */
const STATUS_NAME = 8;
const STATUS_200 = 0x88;

/** Encodes `fields` in order; names in lower case, values in ASCII. `status` comes first; without it the block is a trailer. */
export function encodeHeaders(fields: Readonly<Record<string, string>>, status?: number): Buffer {
  const parts: Buffer[] = [];
  if (status === 200) parts.push(Buffer.of(STATUS_200));
  else if (status !== undefined) parts.push(Buffer.of(STATUS_NAME), string(String(status)));
  for (const [name, value] of Object.entries(fields)) parts.push(Buffer.of(0), string(name), string(value));
  return Buffer.concat(parts);
}

/** Without Huffman coding: it would save a quarter of the bytes but cost more CPU. */
function string(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([integer(bytes.length), bytes]);
}

/** HPACK integer with a seven-bit prefix whose leading bit is 0. */
function integer(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}
