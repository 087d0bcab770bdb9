import { validateRules } from "sluice";
import { describe, expect, test } from "vitest";
import { migrateNginx } from "./nginx.js";

const http = (text: string) =>
  migrateNginx(`http { limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s; ${text} }`);
const only = (text: string) => {
  const { rules } = http(text);
  expect(rules).toHaveLength(1);
  const { description: _, ...rule } = rules[0]!;
  return rule;
};

describe("limit_req becomes GCRA", () => {
  const rule = { id: "one", key: ["ip"], algorithm: "gcra", limit: 10, window: "1s" };

  test.each([
    ["", { burst: 1 }],
    ["burst=20 nodelay", { burst: 21 }],
    ["burst=20", { burst: 1, maxWait: "2000ms" }],
    ["burst=20 delay=8", { burst: 9, maxWait: "1200ms" }],
    ["burst=4 delay=9", { burst: 5 }],
  ])("limit_req zone=one %s", (args, numbers) => {
    expect(only(`limit_req zone=one ${args};`)).toEqual({ ...rule, ...numbers });
  });

  test("rates by the minute, and waits that rules cannot have", () => {
    const { rules, notes } = migrateNginx(
      "limit_req_zone $host zone=slow:1m rate=1r/m; server { limit_req zone=slow burst=100; }",
    );
    expect(rules[0]).toMatchObject({ key: ["host"], limit: 1, window: "1m", maxWait: "3600000ms" });
    expect(notes.join()).toContain("longer than an hour");
  });
});

describe("where it applies", () => {
  const at = (block: string) => only(`server { ${block} }`).match;

  test.each([
    ["location / { limit_req zone=one; }", undefined],
    ["location = /login { limit_req zone=one; }", { path: "/login" }],
    ["location /api { limit_req zone=one; }", { path: "/api**" }],
    ["location ^~ /api/ { limit_req zone=one; }", { path: "/api/**" }],
    ["server_name a.com .b.com _; limit_req zone=one;", { host: ["a.com", "b.com", "*.b.com"] }],
    ["location /a { limit_req zone=one; } location /b { limit_req zone=one; }", { path: ["/a**", "/b**"] }],
  ])("%s", (block, match) => {
    expect(at(block)).toEqual(match);
  });

  test("a regular expression is not guessed: the rule is in shadow mode, and a note explains it", () => {
    const { rules, notes } = http(String.raw`server { location ~ \.php$ { limit_req zone=one; } }`);
    expect(rules[0]).toMatchObject({ mode: "shadow" });
    expect(notes).toEqual([expect.stringContaining(String.raw`location ~ \.php$`)]);
  });

  test("a dry run is shadow mode, inherited or not", () => {
    expect(only("limit_req_dry_run on; server { limit_req zone=one; }").mode).toBe("shadow");
    expect(only("limit_req_dry_run on; server { limit_req_dry_run off; limit_req zone=one; }").mode).toBeUndefined();
  });
});

test("keys: variables become attributes, with their sources", () => {
  const { rules, attributes } = migrateNginx(
    `limit_req_zone "$http_x_tenant-${"$"}{cookie_sid}$request_method$jwt_claim_sub" zone=z:1m rate=5r/s; limit_req zone=z;`,
  );
  expect(rules[0]!.key).toEqual(["x_tenant", "sid", "method", "sub"]);
  expect(Object.fromEntries(attributes)).toEqual({
    x_tenant: { header: "x-tenant" },
    sid: { cookie: "sid" },
    sub: { claim: "sub" },
  });
  expect(migrateNginx('limit_req_zone "all" zone=z:1m rate=5r/s; limit_req zone=z;').rules[0]!.key).toEqual([]);
});

test("differences in meaning are noted", () => {
  const { notes } = http(`limit_req_status 503; include sites/*; limit_conn_zone $binary_remote_addr zone=c:1m;
    server { limit_req zone=one burst=5 nodelay; limit_conn c 3; limit_req zone=gone;
      location /x { limit_req zone=one; } location /y { limit_req zone=one burst=2; } }`);
  for (const word of [
    "Sluice answers 429",
    "nginx -T",
    "places are given back",
    '"gone"',
    "replaces those around it",
    "used in several ways",
  ]) {
    expect(notes.join("\n")).toContain(word);
  }
});

test("all results are rules that the service accepts", () => {
  const { rules } = http("limit_conn_zone $host zone=c:1m; server { limit_req zone=one burst=5; limit_conn c 3; }");
  expect(validateRules([...rules])).toHaveProperty("rules");
  expect(rules[1]).toMatchObject({ algorithm: "concurrency", limit: 3, key: ["host"] });
});
