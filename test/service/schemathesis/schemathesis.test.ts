/** The running service held against its own OpenAPI document by schemathesis: every operation, every check, valid and invalid requests. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { components, whyMissing } from "../../../scripts/system-components.mjs";
import { leashProcess, makeTempFolder } from "../../harness/leash.js";
import { startTestService } from "../running-service.js";

/** Of both planes: schemathesis sends one. */
const TOKEN = "the-one-token-of-this-test";
const here = fileURLToPath(new URL(".", import.meta.url));

const FORWARD_AUTH = "/v1/forward-auth";
/** A stream has no end to wait for; access.test.ts has it. */
const STREAM = "/admin/v1/stats/stream";

describe.skipIf(whyMissing("schemathesis"))("schemathesis, all checks on, finds nothing", () => {
  // Side by side: both wait for answers of their service most of the time.
  test.concurrent.each([
    ["in any operation", ["--exclude-path", STREAM, "--exclude-path", FORWARD_AUTH]],
    // Gateways may ask with their client's method, QUERY too, which OpenAPI 3.1 cannot declare.
    ["in forward-auth", ["--include-path", FORWARD_AUTH, "--exclude-checks", "unsupported_method"]],
  ])(
    "%s",
    async (_where, chosen) => {
      await using service = await startTestService({
        settings: { "admin-token": TOKEN, "api-token": TOKEN, attributes: "attributes.yaml" },
        files: { "attributes.yaml": "trustedProxies: [loopback]\n" },
      });
      // As a file: schemathesis itself waits no longer than 10 s for a document, which a busy machine may need.
      const document = join(makeTempFolder("openapi"), "openapi.json");
      writeFileSync(document, await (await fetch(`${service.http}/openapi.json`)).text());
      const args = ["--config-file", `${here}schemathesis.toml`, "run", document, "--url", service.http];
      const token = ["--header", `Authorization: Bearer ${TOKEN}`];
      const extent = ["--checks", "all", "--phases", "examples,coverage", "--continue-on-failure", "--no-color"];
      const patience = ["--request-timeout", "120"];
      const { status, output } = await schemathesis([...args, ...token, ...extent, ...patience, ...chosen]);
      console.log(/Test cases:[^\n]*\n[^\n]*/.exec(output)?.[0] ?? "");
      expect(output).toMatch(/Tested: [1-9]/);
      expect(status, output).toBe(0);
      // Thousands of requests, one after the other: minutes on a busy machine.
    },
    900_000,
  );
});

function schemathesis(args: readonly string[]): Promise<{ status: number | null; output: string }> {
  const program = components.schemathesis.find()!;
  const child = spawn(program, args, {
    // It leaves a cache of what it found where it runs.
    cwd: makeTempFolder("schemathesis"),
    env: {
      ...process.env,
      PYTHONPATH: [dirname(dirname(program)), here].join(delimiter),
      PYTHONDONTWRITEBYTECODE: "1",
      SCHEMATHESIS_HOOKS: "addresses",
    },
  });
  leashProcess(child);
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  return new Promise((resolve) => child.on("close", (status) => resolve({ status, output })));
}
