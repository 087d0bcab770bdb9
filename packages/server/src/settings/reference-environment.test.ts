import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ignored, ignoredReferenceNames } from "./ignored-reference-names.js";
import { combined, MARKERS, referenceSettings, renamed } from "./reference-environment.js";
import { resolveSettings, settingNames } from "./settings.js";

const textOf = (env: Record<string, string>) =>
  Object.fromEntries(Array.from(referenceSettings(env), ([name, { text }]) => [name, text]));

test("generic variable names count only in an environment that is clearly envoyproxy/ratelimit's", () => {
  expect(textOf({ HOST: "my-shell", PORT: "1", LOG_LEVEL: "trace", REDIS_URL: "redis:6379" })).toEqual({});
  for (const marker of MARKERS) expect(textOf({ [marker]: "x", PORT: "1" }).port).toBe("1");
});

test("files: the folder is composed as in the reference", () => {
  expect(textOf({ RUNTIME_ROOT: "/data", RUNTIME_SUBDIRECTORY: "ratelimit" })).toEqual({
    host: "0.0.0.0",
    "envoy-config": "/data/ratelimit/config",
  });
});

test.each([
  [{ REDIS_URL: "redis:6379" }, "redis://redis:6379"],
  [{ REDIS_URL: "redis:6379", REDIS_TLS: "true", REDIS_AUTH: "a:b@c" }, "rediss://a:b%40c@redis:6379"],
  [{ REDIS_URL: "a:1,b:2", REDIS_TYPE: "cluster", REDIS_AUTH: "secret" }, "redis+cluster://:secret@a:1,b:2"],
  [{ REDIS_URL: "main,a:1,b:2", REDIS_TYPE: "SENTINEL" }, "redis+sentinel://a:1,b:2/main"],
  [{ REDIS_URL: "rediss://x:1" }, "rediss://x:1"],
])("Redis: %o", (env, store) => {
  expect(textOf({ CONFIG_TYPE: "FILE", ...env }).store).toBe(store);
});

test("Redis over TLS: authority, client certificate and timeout; none of them without TLS", () => {
  const files = { REDIS_TLS_CACERT: "ca.pem", REDIS_TLS_CLIENT_CERT: "cert.pem", REDIS_TLS_CLIENT_KEY: "key.pem" };
  const env = { CONFIG_TYPE: "FILE", REDIS_URL: "redis:6379", REDIS_TIMEOUT: "250ms", ...files };
  expect(textOf({ ...env, REDIS_TLS: "true" })).toMatchObject({
    store: "rediss://redis:6379",
    "store-deadline": "250ms",
    "store-ca": "ca.pem",
    "store-cert": "cert.pem",
    "store-key": "key.pem",
  });
  expect(textOf(env)["store-ca"]).toBeUndefined();
});

test("a backend that is not Redis is a mistake, not silently the memory store", () => {
  const env = { CONFIG_TYPE: "FILE", BACKEND_TYPE: "memcache", MEMCACHE_HOST_PORT: "memcached:11211" };
  expect(() => resolveSettings({ flags: {}, env })).toThrow(/^BACKEND_TYPE: expected .*redis.*got "memcache"/);
  expect(textOf({ ...env, BACKEND_TYPE: "redis", REDIS_URL: "redis:6379" }).store).toBe("redis://redis:6379");
});

test("switches are parsed as in Go; response fields by their names", () => {
  const env = { CONFIG_TYPE: "FILE", SHADOW_MODE: "1", QUOTA_MODE: "F", LIMIT_RESPONSE_HEADERS_ENABLED: "t" };
  expect(textOf({ ...env, LIMIT_RESET_HEADER: "X-Reset" })).toMatchObject({
    "envoy-shadow-mode": "true",
    "envoy-quota-mode": "false",
    "envoy-headers": "RateLimit-Limit,RateLimit-Remaining,X-Reset",
  });
  expect(textOf({ ...env, LIMIT_RESPONSE_HEADERS_ENABLED: "false" })["envoy-headers"]).toBe("off");
});

test("CACHE_KEY_PREFIX is the prefix of the store's keys, and one that would break hash tags fails the start", () => {
  const env = { CONFIG_TYPE: "FILE", RUNTIME_ROOT: import.meta.dirname, RUNTIME_APPDIRECTORY: "." };
  const settings = resolveSettings({ flags: {}, env: { ...env, CACHE_KEY_PREFIX: "shop:" } });
  expect(settings["store-prefix"]).toBe("shop:");
  expect(resolveSettings({ flags: {}, env: { ...env, CACHE_KEY_PREFIX: "" } })["store-prefix"]).toBeUndefined();
  expect(() => resolveSettings({ flags: {}, env: { ...env, CACHE_KEY_PREFIX: "{shop}" } })).toThrow(
    /^CACHE_KEY_PREFIX: expected at most 64 printable characters .* got "\{shop\}"/,
  );
});

test("every variable that is set without effect is reported, unless it requests the default behaviour", () => {
  const env = { REDIS_PERSECOND: "true", REDIS_PERSECOND_URL: "other:6379", USE_STATSD: "false", LOG_FORMAT: "text" };
  const names = (more: Record<string, string>) => ignoredReferenceNames({ ...env, ...more }).map(({ name }) => name);
  expect(names({})).toEqual([]);
  const marked = { CONFIG_TYPE: "FILE" };
  expect(names(marked)).toEqual(["REDIS_PERSECOND", "REDIS_PERSECOND_URL", "LOG_FORMAT"]);
  const asHere = { LOG_FORMAT: "JSON", REDIS_SOCKET_TYPE: "tcp", RUNTIME_WATCH_ROOT: "T", REDIS_PERSECOND: "F" };
  expect(names({ ...marked, ...asHere })).toEqual(["REDIS_PERSECOND_URL"]);
  expect(names({ ...marked, REDIS_SOCKET_TYPE: "unix", STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: "0" })).toEqual(
    expect.arrayContaining(["REDIS_SOCKET_TYPE", "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"]),
  );
});

test("a variable is either supported or listed as ignored, and the docs list both kinds", () => {
  const page = readFileSync(new URL("../../../../docs/from-envoyproxy-ratelimit.md", import.meta.url), "utf8");
  const names = ignored.flatMap((group) => group.names);
  expect(names.filter((name) => name in renamed || name in combined)).toEqual([]);
  const rows = page.matchAll(/^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \| ([^`|][^|]*) \|$/gm);
  // A long list takes several rows.
  const told = new Map<string, string[]>();
  for (const [, listed, why] of rows)
    told.set(why!, [...(told.get(why!) ?? []), ...listed!.replaceAll("`", "").split(", ")]);
  expect(Array.from(told, ([why, listed]) => ({ why, names: listed }))).toEqual(ignored);
});

test("the docs have the same table, and name only existing settings", () => {
  const page = readFileSync(new URL("../../../../docs/from-envoyproxy-ratelimit.md", import.meta.url), "utf8");
  const rows = page.matchAll(/^\| `([A-Z_]+)` \| (`--.*) \|$/gm);
  const told = Object.fromEntries(
    Array.from(rows, ([, name, settings]) => [name, settings!.replaceAll(/[`-]{3}|`/g, "")]),
  );
  expect(told).toEqual({ ...renamed, ...combined });
  for (const names of Object.values({ ...renamed, ...combined })) {
    for (const name of names.split(", ")) expect(settingNames).toContain(name);
  }
});
