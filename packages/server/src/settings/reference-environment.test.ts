import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { combined, MARKERS, referenceSettings, renamed } from "./reference-environment.js";
import { resolveSettings, settingNames } from "./settings.js";

const textOf = (env: Record<string, string>) =>
  Object.fromEntries(Array.from(referenceSettings(env), ([name, { text }]) => [name, text]));

test("names that many shells set count only in an environment that is plainly envoyproxy/ratelimit's", () => {
  expect(textOf({ HOST: "my-shell", PORT: "1", LOG_LEVEL: "trace", REDIS_URL: "redis:6379" })).toEqual({});
  for (const marker of MARKERS) expect(textOf({ [marker]: "x", PORT: "1" }).port).toBe("1");
});

test("files: the folder is put together as there", () => {
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

test("Redis over TLS: authority, client certificate and timeout; nothing of it without TLS", () => {
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

test("a backend that is not Redis is a mistake, not the memory store in silence", () => {
  const env = { CONFIG_TYPE: "FILE", BACKEND_TYPE: "memcache", MEMCACHE_HOST_PORT: "memcached:11211" };
  expect(() => resolveSettings({ flags: {}, env })).toThrow(/^BACKEND_TYPE: expected .*redis.*got "memcache"/);
  expect(textOf({ ...env, BACKEND_TYPE: "redis", REDIS_URL: "redis:6379" }).store).toBe("redis://redis:6379");
});

test("switches are read as Go reads them; response fields by their names", () => {
  const env = { CONFIG_TYPE: "FILE", SHADOW_MODE: "1", QUOTA_MODE: "F", LIMIT_RESPONSE_HEADERS_ENABLED: "t" };
  expect(textOf({ ...env, LIMIT_RESET_HEADER: "X-Reset" })).toMatchObject({
    "envoy-shadow-mode": "true",
    "envoy-quota-mode": "false",
    "envoy-headers": "RateLimit-Limit,RateLimit-Remaining,X-Reset",
  });
  expect(textOf({ ...env, LIMIT_RESPONSE_HEADERS_ENABLED: "false" })["envoy-headers"]).toBe("off");
});

test("the table in the docs is this one, and names settings that there are", () => {
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
