/**
 * The slot of a Redis Cluster that a key lives in: CRC-16 (XMODEM) of its hash tag, modulo 16384 (Redis Cluster specification).
 * Only asked which node a call would go to, so that each node has a breaker of its own; clients route by themselves. Pure.
 */

const SLOTS = 16_384;
const POLYNOMIAL = 0x1021;

const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) !== 0 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc & 0xffff;
});

export function clusterSlot(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  // An empty tag is none: the whole key counts.
  const hashed = Buffer.from(close > open + 1 ? key.slice(open + 1, close) : key);
  let crc = 0;
  for (const byte of hashed) crc = ((crc << 8) & 0xffff) ^ table[((crc >> 8) ^ byte) & 0xff]!;
  return crc % SLOTS;
}
