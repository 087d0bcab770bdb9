/** `sluice migrate`: as a command, and its rules beside the real nginx that they were made from. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLimiter } from "sluice";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { readMapping } from "../../packages/server/src/enforcement/attributes/mapping-file.js";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder } from "../harness/leash.js";
import { startServerProcess } from "../harness/server-process.js";
import { runSluice } from "./running-service.js";

test("writes rules that lint, attributes that serve reads, and its notes into the file", async () => {
  const cwd = makeTempFolder("migrate");
  writeFileSync(
    join(cwd, "kong.yaml"),
    "plugins:\n  - { name: rate-limiting, config: { minute: 5, limit_by: header, header_name: X-Tenant, error_code: 503 } }\n",
  );
  const made = await runSluice(["migrate", "kong.yaml", "-o", "rules.yaml", "--attributes", "attributes.yaml"], {
    cwd,
  });
  expect(made).toMatchObject({ status: 0, stdout: "" });
  expect(made.stderr).toBe("note: error_code 503: Sluice answers 429\n");
  expect(readFileSync(join(cwd, "rules.yaml"), "utf8")).toContain("# NOTE: error_code 503: Sluice answers 429\n");
  expect((await runSluice(["rules", "lint", "rules.yaml"], { cwd })).status).toBe(0);
  expect(readMapping(join(cwd, "attributes.yaml")).mapping.attributes).toEqual({ x_tenant: { header: "x-tenant" } });
});

test("a file that is none, has no limits, or is broken is said, with status 2 or 1", async () => {
  const cwd = makeTempFolder("migrate");
  writeFileSync(join(cwd, "empty.conf"), "http { }");
  writeFileSync(join(cwd, "broken.conf"), "http {\n  limit_req zone=\n");
  writeFileSync(join(cwd, "broken.yaml"), "domain: a\ndescriptors: [{ keys: 1 }]\n");
  const migrate = (file: string) => runSluice(["migrate", file], { cwd });
  expect((await migrate("nowhere.conf")).status).toBe(2);
  expect(await migrate("empty.conf")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("no limit was found"),
  });
  expect(await migrate("broken.conf")).toMatchObject({ status: 1, stderr: expect.stringContaining("line 2") });
  expect(await migrate("broken.yaml")).toMatchObject({ status: 1, stderr: expect.stringContaining("keys") });
});

describe.skipIf(whyMissing("nginx"))("beside nginx", () => {
  /** So slow a rate that no request leaks away while the test runs, however busy the machine is. */
  const limits = {
    "/plain": "limit_req zone=one;",
    "/burst": "limit_req zone=two burst=3 nodelay;",
    "/other": "limit_req zone=two burst=6 nodelay;",
  };

  test("as many of 10 requests at once pass as nginx lets pass", async () => {
    const folder = makeTempFolder("nginx");
    mkdirSync(join(folder, "tmp"));
    const port = await freePort();
    // `return` would answer before limits are looked at: the requests go to a place of the same server.
    const locations = Object.entries(limits).map(
      ([path, limit]) => `location ${path} { ${limit} proxy_pass http://127.0.0.1:${port}/ok; }`,
    );
    writeFileSync(
      join(folder, "nginx.conf"),
      `daemon off; pid nginx.pid; error_log stderr notice; events {}
http {
  access_log off; client_body_temp_path tmp/a; proxy_temp_path tmp/b; fastcgi_temp_path tmp/c; uwsgi_temp_path tmp/d; scgi_temp_path tmp/e;
  limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;
  limit_req_zone $uri zone=two:1m rate=1r/m;
  limit_req_status 429;
  server { listen 127.0.0.1:${port}; location = /ok { return 200 ok; } ${locations.join("\n")} }
}`,
    );
    const nginx = await startServerProcess({
      command: components.nginx.find()!,
      args: ["-p", folder, "-c", join(folder, "nginx.conf"), "-e", "stderr"],
      readyLine: /start worker process/,
    });
    const { stdout } = await runSluice(["migrate", "nginx.conf"], { cwd: folder });
    const limiter = createLimiter({ rules: parse(stdout).rules });
    for (const path of Object.keys(limits)) {
      const tries = Array.from({ length: 10 }, () => path);
      const answers = await Promise.all(tries.map((one) => fetch(`http://127.0.0.1:${port}${one}`)));
      const decisions = await Promise.all(tries.map((one) => limiter.check({ ip: "127.0.0.1", path: one })));
      const passed = answers.filter(({ status }) => status === 200).length;
      expect(decisions.filter(({ allowed }) => allowed).length, path).toBe(passed);
      expect(passed, path).toBe({ "/plain": 1, "/burst": 4, "/other": 7 }[path]);
    }
    await limiter.close();
    await nginx.stop();
  });
});
