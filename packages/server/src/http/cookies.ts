/**
 * Reads one cookie from a `Cookie` header. Values are not percent-decoded. If a name occurs more than once, the first wins (RFC 6265, 5.4).
 */
import { parseCookie } from "cookie";

const options = { decode: (value: string): string => value.replace(/^"(.*)"$/, "$1") };

export function cookieValue(header: string | undefined, name: string): string | undefined {
  return header === undefined ? undefined : parseCookie(header, options)[name];
}
