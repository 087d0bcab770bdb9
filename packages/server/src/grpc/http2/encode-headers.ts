/**
 * Encodes the headers of answers (HPACK). Every field is a literal that is added to no table: the blocks that matter are the same bytes each
 * time and made once, which an index into a table that changes would not allow.
 */

/** Index of the static table whose name is `:status`, and the index whose value is 200 too. */
const STATUS_NAME = 8;
const STATUS_200 = 0x88;

/** `fields` in order; names in lower case, values in ASCII. `status` comes first; absent: trailers. */
export function encodeHeaders(fields: Readonly<Record<string, string>>, status?: number): Buffer {
  const parts: Buffer[] = [];
  if (status === 200) parts.push(Buffer.of(STATUS_200));
  else if (status !== undefined) parts.push(Buffer.of(STATUS_NAME), string(String(status)));
  for (const [name, value] of Object.entries(fields)) parts.push(Buffer.of(0), string(name), string(value));
  return Buffer.concat(parts);
}

/** Not Huffman: shorter by a quarter, dearer to make. */
function string(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([integer(bytes.length), bytes]);
}

/** With a prefix of seven bits, of which the first bit is 0. */
function integer(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}
