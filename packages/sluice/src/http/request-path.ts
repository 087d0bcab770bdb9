/**
 * The path of a request as rules see it: complete (mounted routers do not shorten it), without query and fragment, and with
 * the escapes undone that mean the same as the plain character (`/%6cogin` is `/login`, as most routers have it).
 * `%2F` and the other reserved characters stay escaped: they are not the same as the plain ones. Letters keep their case. Pure.
 */

/** `target`: the request target as it came, also in absolute form (`GET http://host/path`), which routers accept. */
export function requestPath(target: string): string {
  let path = target;
  if (!path.startsWith("/")) path = pathOfAbsolute(path);
  path = before("#", before("?", path));
  if (!path.includes("%")) return path;
  try {
    return decodeURI(path);
  } catch {
    // Bytes that are no UTF-8. Routers refuse or pass them on as they are.
    return path;
  }
}

function before(mark: string, text: string): string {
  const at = text.indexOf(mark);
  return at === -1 ? text : text.slice(0, at);
}

function pathOfAbsolute(target: string): string {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(target);
  // "*" of OPTIONS stays as it is.
  if (authority === null) return target;
  const path = target.slice(authority[0].length);
  return path.startsWith("/") ? path : `/${path}`;
}
