/**
 * Whether a request that carries the session cookie was made by a page of ours. A browser adds the cookie by itself, whoever asks for it;
 * `SameSite=Strict` keeps other sites out, but another port of the same host is the same site.
 * Three things must hold, of which each alone would do in a browser that plays by the rules:
 *   the cookie is SameSite=Strict            other sites do not get it sent
 *   `x-sluice-dashboard` on every change     a form cannot set it; a script of another origin would have to ask first (CORS), and is not answered
 *   Sec-Fetch-Site, or Origin against Host   the browser itself says where the page came from
 */
import type { IncomingHttpHeaders } from "node:http";

export const OWN_HEADER = "x-sluice-dashboard";

const SAFE = new Set(["GET", "HEAD"]);

/** Undefined if it was; else what is wrong. */
export function whyNotOwnPage({
  method,
  headers,
}: {
  method: string;
  headers: IncomingHttpHeaders;
}): string | undefined {
  const isChange = !SAFE.has(method);
  if (isChange && headers[OWN_HEADER] === undefined) return `${OWN_HEADER}: a request with the session cookie needs it`;
  const site = headers["sec-fetch-site"];
  if (site !== undefined) {
    // `none`: typed into the address bar. That never changes anything.
    const isOwn = site === "same-origin" || (site === "none" && !isChange);
    return isOwn ? undefined : "sec-fetch-site: expected same-origin";
  }
  const { origin, host } = headers;
  if (origin === undefined) return isChange ? "origin: expected the dashboard's own" : undefined;
  return hostOf(origin) === host ? undefined : "origin: expected the dashboard's own";
}

function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/]+)$/.exec(origin)?.[1];
}
