/**
 * CSRF protection of the dashboard's session. Browsers add the cookie to any request to this host, even from a foreign page;
 * `SameSite=Strict` keeps other sites out, but another port of the same host is the same site.
 * Three defences, each sufficient on its own in a standards-compliant browser:
 *   the cookie is SameSite=Strict            browsers do not send it from other sites
 *   `x-sluice-dashboard` on every change     forms cannot set it; a foreign script needs a CORS preflight, which is not answered
 *   Sec-Fetch-Site, or Origin against Host   set by the browser itself, not by the page
 */
import type { IncomingHttpHeaders } from "node:http";

const CSRF_HEADER = "x-sluice-dashboard";

const SAFE = new Set(["GET", "HEAD"]);

/** Undefined if the request came from one of our own pages; otherwise the reason to refuse it. */
export function whyForgeable({
  method,
  headers,
}: {
  method: string;
  headers: IncomingHttpHeaders;
}): string | undefined {
  const isChange = !SAFE.has(method);
  if (isChange && headers[CSRF_HEADER] === undefined)
    return `${CSRF_HEADER}: a request with the session cookie needs it`;
  const site = headers["sec-fetch-site"];
  if (site !== undefined) {
    // `none`: entered in the address bar, which never sends a change.
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
