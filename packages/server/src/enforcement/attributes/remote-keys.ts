/**
 * A token issuer's key set, by URL. In: a token's header. Out: the key that verifies it; rejects if there is none.
 * While the issuer is away the keys that it gave last go on verifying: without them every client would be anonymous, and rules by claims
 * would apply to nobody. A failed fetch is not repeated at each request, because a request waits for it.
 */
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  type ExportedJWKSCache,
  type JWTVerifyGetKey,
  jwksCache,
} from "jose";

const FETCH_MS = 2_000;
const RETRY_AFTER_MS = 5_000;

export function remoteKeys(url: URL): JWTVerifyGetKey {
  let retryAtMonotonicMs = 0;
  const fetchUnlessDown: typeof fetch = async (input, init) => {
    if (performance.now() < retryAtMonotonicMs) throw new Error(`${url} did not answer lately`);
    let answered = false;
    try {
      const response = await fetch(input, init);
      answered = response.ok;
      return response;
    } finally {
      if (!answered) retryAtMonotonicMs = performance.now() + RETRY_AFTER_MS;
    }
  };
  // jose fills it at each fetch.
  const last: Partial<ExportedJWKSCache> = {};
  const remote = createRemoteJWKSet(url, {
    timeoutDuration: FETCH_MS,
    [customFetch]: fetchUnlessDown,
    [jwksCache]: last as Record<string, never>,
  });
  let kept: { readonly jwks: object; readonly keyOf: JWTVerifyGetKey } | undefined;
  return async (header, token) => {
    try {
      return await remote(header, token);
    } catch (error) {
      // From fresh keys: it is the token that is wrong.
      const { jwks } = last;
      if (remote.fresh || jwks === undefined) throw error;
      if (kept?.jwks !== jwks) kept = { jwks, keyOf: createLocalJWKSet(jwks) };
      return await kept.keyOf(header, token);
    }
  };
}
