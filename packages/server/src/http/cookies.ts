/** Reads one cookie of a `Cookie` header, as it was sent: values are not percent-decoded. Of several of one name, the first counts (RFC 6265, 5.4). */
import { parseCookie } from "cookie";

const options = { decode: (value: string): string => value.replace(/^"(.*)"$/, "$1") };

export function cookieValue(header: string | undefined, name: string): string | undefined {
  return header === undefined ? undefined : parseCookie(header, options)[name];
}
