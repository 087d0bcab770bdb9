/**
 * The token in a wall screen's link, `/wall#token=…`. Browsers do not send the fragment after `#`, so it appears in no log and no
 * `Referer`. Pure.
 */
export const WALL = "/wall";

export function wallLink(origin: string, token: string): string {
  return `${origin}${WALL}#token=${encodeURIComponent(token)}`;
}

/** Undefined on another page, or without a token. */
export function wallToken({ pathname, hash }: { pathname: string; hash: string }): string | undefined {
  if (pathname !== WALL) return undefined;
  const token = new URLSearchParams(hash.slice(1)).get("token")?.trim();
  return token === "" || token === null ? undefined : token;
}
