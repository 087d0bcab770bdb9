/** gRPC message framing (Length-Prefixed-Message): a flag byte, 0 if not compressed, and four bytes of length. */
export const PREFIX_BYTES = 5;

export function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}
