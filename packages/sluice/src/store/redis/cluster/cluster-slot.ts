/**
 * The Redis Cluster slot of a key: CRC-16 (XMODEM) of its hash tag, modulo 16384 (Redis Cluster specification). Used to find the node that
 * a call would go to: each node has its own breaker, and calls to the same node are batched. Clients route by themselves. Pure.
 */

const SLOTS = 16_384;
const POLYNOMIAL = 0x1021;
const MOST_ASCII = 0x7f;

const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) !== 0 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc & 0xffff;
});

export function clusterSlot(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  // An empty tag does not count as one: the whole key is hashed.
  const isTagged = close > open + 1;
  const [from, to] = isTagged ? [open + 1, close] : [0, key.length];
  let crc = 0;
  for (let i = from; i < to; i++) {
    const unit = key.charCodeAt(i);
    // Most keys are ASCII, and every check on a cluster computes its slot.
    if (unit > MOST_ASCII) return slotOfBytes(Buffer.from(key.slice(from, to)));
    crc = ((crc << 8) & 0xffff) ^ table[((crc >> 8) ^ unit) & 0xff]!;
  }
  return crc % SLOTS;
}

function slotOfBytes(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) & 0xffff) ^ table[((crc >> 8) ^ byte) & 0xff]!;
  return crc % SLOTS;
}
