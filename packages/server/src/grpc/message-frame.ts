/** How gRPC marks off a message in a body: a flag, 0 for one that is not compressed, and four bytes of length (Length-Prefixed-Message). */
export const PREFIX_BYTES = 5;

/** A message as it is sent. */
export function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}
