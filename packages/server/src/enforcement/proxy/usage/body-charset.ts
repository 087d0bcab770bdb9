/**
 * Whether all servers read the same text from a call's bytes, judging by its content type. Some decode a body by its charset parameter, and in
 * some charsets ASCII bytes spell another text: UTF-7 encodes quotes as letters. Pure.
 */

/** Matches extended and continued parameters (RFC 2231) too. */
const charset = /charset[^=;,]*=[ \t]*"?([^\s";,]*)/gi;
/** In these charsets an ASCII byte is always its own character. */
const plain = /^(?:utf-?8|us-ascii|iso-8859-1)$/i;

export function isReadAlike(contentType: string): boolean {
  return [...contentType.matchAll(charset)].every(([, name = ""]) => plain.test(name));
}
