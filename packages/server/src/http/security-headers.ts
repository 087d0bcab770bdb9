/** Security headers (CSP and others) of every page that this service serves. One table for the dashboard and /docs. */

const policy = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  "img-src": "'self'",
  "connect-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'self'",
  "frame-ancestors": "'none'",
};

/** Trusted Types: no server-provided text can become HTML, even by mistake. */
const trustedTypes = { "require-trusted-types-for": "'script'", "trusted-types": "'none'" };

const others = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

function spelled(directives: Readonly<Record<string, string>>): string {
  return Object.entries(directives)
    .map(([name, value]) => `${name} ${value}`)
    .join("; ");
}

/** No inline script or style, no third-party resources, no frames. */
export const dashboardHeaders = { "content-security-policy": spelled({ ...policy, ...trustedTypes }), ...others };

/** Swagger UI uses data: URLs for icons and writes HTML, which Trusted Types would block. */
export const docsHeaders = {
  "content-security-policy": spelled({ ...policy, "img-src": "'self' data:" }),
  ...others,
};
