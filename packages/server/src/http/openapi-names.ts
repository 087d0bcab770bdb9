/**
 * The operationId of every operation in the OpenAPI document: generated clients name their methods after it.
 * Never change a released name. Routes that are not listed get a name derived from method and path.
 */
const names: Readonly<Record<string, string>> = {
  "get /healthz": "getHealth",
  "get /readyz": "getReadiness",
  "get /metrics": "getMetrics",
  "post /v1/check": "check",
  "post /v1/check/batch": "checkBatch",
  "post /v1/charge": "charge",
  "post /v1/peek": "peek",
  "post /v1/explain": "explain",
  "post /v1/release": "release",
  "post /v1/renew": "renew",
  "post /v1/refund": "refund",
  "post /v1/settle": "settle",
  "post /v1/extend": "extend",
  "post /v1/cancel": "cancel",
  "post /v1/utilisation": "reportUtilisation",
  "post /json": "shouldRateLimit",
  "get /admin/v1/rules": "listRules",
  "post /admin/v1/rules": "changeRules",
  "put /admin/v1/rules": "replaceRules",
  "get /admin/v1/rules/{id}": "getRule",
  "put /admin/v1/rules/{id}": "putRule",
  "delete /admin/v1/rules/{id}": "deleteRule",
  "post /admin/v1/rules/{id}/promote": "promoteRule",
  "post /admin/v1/rules/{id}/try": "tryRule",
  "get /admin/v1/rules/{id}/suggestions": "suggestLimits",
  "get /admin/v1/versions": "listVersions",
  "get /admin/v1/versions/{version}": "getVersion",
  "post /admin/v1/versions/{version}/rollback": "rollBack",
  "get /admin/v1/audit": "listAudit",
  "get /admin/v1/keys/top": "listTopKeys",
  "get /admin/v1/keys/blocked": "listBlockedKeys",
  "post /admin/v1/keys/explain": "explainKey",
  "post /admin/v1/keys/reset": "resetKey",
  "post /admin/v1/keys/block": "blockKey",
  "get /admin/v1/tokens": "listTokens",
  "post /admin/v1/tokens": "createToken",
  "delete /admin/v1/tokens/{name}": "deleteToken",
  "get /admin/v1/stats/stream": "streamStats",
  "get /admin/v1/alerts": "listAlerts",
  "post /admin/v1/session": "signIn",
  "delete /admin/v1/session": "signOut",
};

export function operationName(method: string, path: string): string {
  return names[`${method} ${path}`] ?? derivedName(method, path);
}

/** `get /admin/v1/stats` becomes `getStats`. */
function derivedName(method: string, path: string): string {
  const words = path
    .replace(/^\/(admin\/)?v1\//, "")
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== "");
  return method + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
}
