/**
 * The normal form of a request's path: every spelling that a server may route to the same place becomes one path, so that no spelling
 * escapes a rule. RFC 3986, sections 5.2.4 (dot segments) and 6.2.2 (escapes, upper-case hex), and doubled slashes are merged as nginx
 * does. In: a request target as received. Out: the path that rules see, and the target that a proxy may pass on. Pure.
 *
 *   normalTarget  a URI: every escape that RFC 3986 distinguishes from its character is kept
 *   requestPath   the same for humans: escapes become characters (`/caf%C3%A9` is `/café`), except those that would change the
 *                 path's structure (`%2F`, `%5C`, `%3B`, `%3F`, `%23`, `%25`), control characters, and bytes that are not UTF-8
 */

export interface PathOptions {
  /**
   * The meaning of `%2F` and `%5C`. Default `keep`: characters of a segment. `decode`: slashes, as nginx and most servlet containers read
   * them.
   */
  encodedSlashes?: "keep" | "decode";
  /** Lower-case paths, for servers that ignore case (Express by default). Rules must then be in lower case. */
  ignoreCase?: boolean;
  /** `/login/` is `/login`. */
  ignoreTrailingSlash?: boolean;
  /** `/login;v=1` is `/login`, as in servlet containers. */
  ignoreParams?: boolean;
}

/** Signs of a path that is not in normal form (most paths are): escapes, characters to escape, empty segments, dot segments. */
const UNUSUAL = /[^\w\-.~!$&'()*+,;=:@/]|\/[/.]/;

/** The whole requested path, as rules see it: no query, no fragment. The `*` of OPTIONS is kept. */
export function requestPath(target: string, options: PathOptions = {}): string {
  return readable(normalPath(pathPart(target), options), options);
}

/**
 * The path of the same request as a lenient router reads it; absent if that is the same path. Express and Koa leave `..` in place and
 * compare by prefix: to them `/admin/../x` is below `/admin`. Node's `url.parse`, which they use for unusual targets (absolute form, a
 * fragment), reads a backslash as a slash and drops a trailing no-break space. If Sluice does not write the target that the application
 * sees, both readings have to pass.
 */
export function unresolvedPath(target: string, options: PathOptions = {}): string | undefined {
  const isOdd = target.includes("\\") || isBlank(target.charCodeAt(target.length - 1));
  if (!isOdd && !target.includes("..") && !(target.includes("%2") && MAYBE_CLIMBS.test(target))) return undefined;
  const segments = mergedSegments(pathPart(isOdd ? parsedLeniently(target) : target), options);
  if (!isOdd && !segments.includes("..")) return undefined;
  const path = readable(`/${segments.join("/")}`, options);
  return path === requestPath(target, options) ? undefined : path;
}

function parsedLeniently(target: string): string {
  let end = target.length;
  while (end > 0 && isBlank(target.charCodeAt(end - 1))) end--;
  const path = before("?", target.slice(0, end));
  return path.replaceAll("\\", "/") + target.slice(path.length, end);
}

/** White space that an HTTP parser accepts in a target. */
function isBlank(code: number): boolean {
  return code === 0xa0 || code === 0xfeff;
}

const MAYBE_CLIMBS = /(?:\.|%2e){2}/i;

/** The target in normal form, with its query, in origin form: what a proxy passes on, so that the upstream sees what was judged. */
export function normalTarget(target: string, options: Pick<PathOptions, "encodedSlashes"> = {}): string {
  const whole = before("#", target);
  const query = whole.slice(before("?", whole).length);
  return normalPath(pathPart(target), options) + query.replaceAll(NOT_IN_QUERY, escapeBytes);
}

/** Whether the path contains a slash or backslash that not every server reads as one. */
export function hasEncodedSlash(target: string): boolean {
  return /%2f|%5c|\\/i.test(pathPart(target));
}

function pathPart(target: string): string {
  const path = before("#", before("?", target));
  if (path.startsWith("/") || path === "*") return path;
  // Absolute form (RFC 9112, section 3.2.2). Anything else is read as a path.
  const afterAuthority = /^[a-z][a-z0-9+.-]*:\/\/[^/\\]*(.*)$/is.exec(path)?.[1] ?? path;
  return afterAuthority.startsWith("/") ? afterAuthority : `/${afterAuthority}`;
}

function before(mark: string, text: string): string {
  const at = text.indexOf(mark);
  return at === -1 ? text : text.slice(0, at);
}

function normalPath(path: string, options: PathOptions): string {
  if (path === "*" || (!UNUSUAL.test(path) && options.ignoreParams !== true)) return path;
  const kept: string[] = [];
  const segments = mergedSegments(path, options);
  segments.forEach((segment, i) => {
    if (segment === "..") kept.pop();
    if (segment !== "." && segment !== "..") kept.push(segment);
    // A dot segment at the end names a folder: RFC 3986, section 5.2.4, keeps its slash.
    else if (i === segments.length - 1) kept.push("");
  });
  return `/${kept.join("/")}`;
}

/** Normalises escapes, then splits at slashes. Drops empty segments, except one at the end, which is the trailing slash. */
function mergedSegments(path: string, { encodedSlashes, ignoreParams }: PathOptions): string[] {
  let text = path.includes("%") ? path.replaceAll(ESCAPE, normalEscape) : path;
  if (NOT_ASCII_PATH.test(text)) text = text.replaceAll(NOT_IN_PATH, escapeBytes);
  if (encodedSlashes === "decode") text = text.replaceAll(/%2F|%5C/g, "/");
  // Before dot segments: servlet containers resolve `/x/..;/login`.
  if (ignoreParams === true) text = text.replaceAll(/;[^/]*/g, "");
  const segments = text.split("/");
  return segments.filter((segment, i) => segment !== "" || i === segments.length - 1);
}

const ESCAPE = /%(?:[0-9a-f]{2})?/gi;
const UNRESERVED = /[\w\-.~]/;

function normalEscape(triplet: string): string {
  // A percent sign that does not begin an escape stands for itself.
  if (triplet === "%") return "%25";
  const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
  return UNRESERVED.test(character) ? character : triplet.toUpperCase();
}

/** Characters that RFC 3986, sections 3.3 and 3.4, does not allow unescaped. */
const NOT_IN_PATH = /[^\w\-.~!$&'()*+,;=:@/%]/gu;
const NOT_ASCII_PATH = /[^\w\-.~!$&'()*+,;=:@/%]/;
// Brackets and the like are unescaped in many queries, and no rule sees them: only what would end a line or a target is escaped.
const NOT_IN_QUERY = /[^\x21-\x7e]/gu;

/** A target consists of bytes, which Node reads as Latin-1; characters beyond that were decoded by the caller and are encoded as UTF-8. */
function escapeBytes(character: string): string {
  return Array.from(Buffer.from(character, character <= "\xff" ? "latin1" : "utf8"), escapeByte).join("");
}

function escapeByte(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}

function readable(path: string, { ignoreCase, ignoreTrailingSlash }: PathOptions): string {
  let text = path.includes("%") ? path.replaceAll(ASCII_ESCAPE, decode).replaceAll(UTF8_ESCAPES, decode) : path;
  if (ignoreCase === true) text = text.toLowerCase();
  if (ignoreTrailingSlash === true && text.length > 1 && text.endsWith("/")) text = text.slice(0, -1);
  return text;
}

/**
 * Printable ASCII except `#`, `%`, `/`, `;`, `?` and the backslash. None of these has a meaning in globs, so no client escapes a rule by
 * escaping them.
 */
const ASCII_ESCAPE = /%(?:2[0-246-9A-C]|3[AC-E]|[46]0|5[BDE]|7[B-D])/g;
const UTF8_ESCAPES = /%[CD][\dA-F]%[89AB][\dA-F]|%E[\dA-F](?:%[89AB][\dA-F]){2}|%F[0-4](?:%[89AB][\dA-F]){3}/g;

function decode(escapes: string): string {
  try {
    return decodeURIComponent(escapes);
  } catch {
    // An overlong form or a surrogate: not valid UTF-8.
    return escapes;
  }
}
