import { validateRules } from "sluice";
import { expect, test } from "vitest";
import { migrateEnvoy } from "./envoy-ratelimit.js";
import { migrateKong } from "./kong.js";

const plugin = (config: string, more = "") => `plugins:\n  - { name: rate-limiting, config: ${config}${more} }\n`;

test("each period of Kong's plugin is a fixed window, months by the calendar", () => {
  const { rules } = migrateKong(plugin("{ second: 5, hour: 9, month: 100, limit_by: ip, fault_tolerant: false }"));
  expect(rules.map(({ description: _, ...rule }) => rule)).toEqual([
    { id: "global-1s", key: ["ip"], onStoreFailure: "deny", algorithm: "fixed-window", limit: 5, window: "1s" },
    { id: "global-1h", key: ["ip"], onStoreFailure: "deny", algorithm: "fixed-window", limit: 9, window: "1h" },
    expect.objectContaining({ id: "global-month", window: "month", align: "calendar", limit: 100 }),
  ]);
  expect(validateRules([...rules])).toHaveProperty("rules");
});

test("the advanced plugin's windows are sliding, and pair limits with sizes", () => {
  const { rules, attributes } = migrateKong(`plugins:
  - name: rate-limiting-advanced
    config: { limit: [10, 100], window_size: [1, 60], identifier: header, header_name: X-Tenant-Id }`);
  expect(rules).toMatchObject([
    { algorithm: "sliding-counter", limit: 10, window: "1s", key: ["x_tenant_id"] },
    { algorithm: "sliding-counter", limit: 100, window: "60s" },
  ]);
  expect(attributes.get("x_tenant_id")).toEqual({ header: "x-tenant-id" });
});

test("routes, services and consumers become matches, whether plugins are nested or name them", () => {
  const services = `services:
  - name: orders
    routes:
      - { name: read, paths: [/orders, /old], methods: [GET], hosts: [api.example.com] }
      - { name: write, paths: [/orders], methods: [POST] }
`;
  const { rules, notes } = migrateKong(`${services}plugins:
  - { name: rate-limiting, route: read, config: { second: 1, limit_by: ip } }
  - { name: rate-limiting, service: { name: orders }, enabled: false, config: { second: 2, limit_by: ip } }
consumers:
  - { username: acme, plugins: [{ name: rate-limiting, config: { second: 3 } }] }
`);
  expect(rules.map(({ match, mode }) => ({ match, mode }))).toEqual([
    { match: { host: "api.example.com", method: "GET", path: ["/orders**", "/old**"] }, mode: undefined },
    { match: { method: ["GET", "POST"], path: ["/orders**", "/old**"] }, mode: "off" },
    { match: { consumer: "acme" }, mode: undefined },
  ]);
  expect(notes.join("\n")).toContain("most specific instance");
});

test("Kong: an empty or invalid configuration yields nothing", () => {
  for (const text of ["", "[]", "plugins: 3", "plugins: [{ name: cors }]"]) expect(migrateKong(text).rules).toEqual([]);
});

test("envoyproxy/ratelimit: open keys become key attributes, values are matched, shadow mode and extensions are kept", () => {
  const { rules, notes } = migrateEnvoy(`domain: shop
descriptors:
  - key: user
    rate_limit: { unit: MINUTE, requests_per_unit: 20 }
    descriptors:
      - { key: path, value: "/v1*", shadow_mode: true, rate_limit: { unit: second, requests_per_unit: 3 } }
  - { key: plan, value: gold, rate_limit: { unlimited: true } }
  - { key: plan, value: free, rate_limit: { requests_per_unit: 5, window: 10s, algorithm: rolling-window } }
`);
  expect(rules).toEqual([
    { id: "shop.user", match: { domain: "shop" }, key: ["user"], algorithm: "fixed-window", limit: 20, window: "60s" },
    expect.objectContaining({
      match: { domain: "shop", path: "/v1**" },
      key: ["user", "path"],
      mode: "shadow",
      limit: 3,
    }),
    expect.objectContaining({
      match: { domain: "shop", plan: "free" },
      key: [],
      algorithm: "rolling-window",
      window: "10s",
    }),
  ]);
  expect(notes.join("\n")).toContain("unlimited");
  expect(validateRules([...rules])).toHaveProperty("rules");
  expect(() => migrateEnvoy("domain: shop\ndescriptors: [{ keys: a }]")).toThrow();
});
