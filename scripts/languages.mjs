/**
 * `npm run languages`: the parts of docs/languages.md that are too slow for every test run, against a service of its own. The Go example;
 * clients that openapi-generator makes in Go and in Python, compiled and asked. A cold build of Go's net/http takes 40 s of processor time, and
 * pip fetches pydantic. Exit status 1 if one failed; a toolchain that is not here is said, and fails nothing.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pythonWithPip } from "./pip-programs.mjs";
import { root, run, seconds } from "./run-command.mjs";
import { components, ensureComponents, onPath } from "./system-components.mjs";

const { startService } = await import("../packages/server/dist/service/service.js");
const { resolveSettings } = await import("../packages/server/dist/settings/settings.js");
const { createLog } = await import("../packages/server/dist/log.js");

const folder = mkdtempSync(join(tmpdir(), "sluice-languages-"));
const rules = join(folder, "rules.json");
writeFileSync(
  rules,
  JSON.stringify({ rules: [{ id: "per-user", key: ["user"], algorithm: "rolling-window", limit: 2, window: "1h" }] }),
);
const flags = { port: "0", "grpc-port": "0", "data-folder": folder, rules, "log-level": "silent", "drain-delay": "0" };
const settings = resolveSettings({ flags, env: {} });
const service = await startService({ settings, log: createLog("silent") });
const document = join(folder, "openapi.json");
writeFileSync(document, await (await fetch(`${service.http}/openapi.json`)).text());
let failed = false;

/**
 * @param {string} name
 * @param {string} expected
 * @param {import("./run-command.mjs").Command} command
 */
async function expectOutput(name, expected, command) {
  const { code, output, tookMs } = await run({ ...command, capture: true });
  const ok = code === 0 && output.endsWith(expected);
  failed ||= !ok;
  console.log(`${ok ? "ok     " : "failed "} ${name} (${seconds(tookMs)})${ok ? "" : `:\n${output}`}`);
}

/**
 * @param {"go" | "python"} language
 * @param {readonly string[]} [more]
 */
async function generate(language, more = []) {
  const to = join(folder, language);
  const jar = /** @type {string} */ (components.openapiGenerator.find());
  const args = ["-jar", jar, "generate", "-g", language, "-i", document, "-o", to, ...more];
  const { code, output } = await run({ command: "java", args, capture: true });
  if (code !== 0) console.log(output);
  return to;
}

async function tryGo() {
  const env = { SLUICE_SERVER: service.http, SLUICE_TIMEOUT: "60" };
  const printed = "allowed, 1 left\nallowed, 0 left\nrefused by per-user\n";
  const example = join(root, "examples/languages/check.go");
  await expectOutput("Go, the example", printed, { command: "go", args: ["run", example], env });
  const client = await generate("go", ["--additional-properties=withGoMod=true"]);
  const program = join(client, "cmd");
  mkdirSync(program);
  writeFileSync(
    join(program, "main.go"),
    `package main

import (
	"context"
	"fmt"

	openapi "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	configuration := openapi.NewConfiguration()
	configuration.Servers[0].URL = ${JSON.stringify(service.http)}
	user := "generated in Go"
	request := openapi.NewCheckRequest(map[string]openapi.AttributeValue{"user": {String: &user}})
	decision, _, err := openapi.NewAPIClient(configuration).ChecksAPI.Check(context.Background()).CheckRequest(*request).Execute()
	fmt.Println(decision.GetAllowed(), decision.GetRemaining(), err)
}
`,
  );
  await run({ command: "go", args: ["mod", "tidy"], cwd: client, capture: true });
  await expectOutput("Go, generated", "true 1 <nil>\n", { command: "go", args: ["run", "./cmd"], cwd: client });
}

async function tryPython() {
  const python = await pythonWithPip();
  if (python === undefined) return console.log("Python, generated: no python3 with pip is here");
  const more = ["--package-name", "sluice_client", "--schema-mappings", "AttributeValue=object"];
  const client = await generate("python", more);
  const wanted = ["pydantic>=2", "urllib3>=2", "python-dateutil", "typing-extensions"];
  const target = join(folder, "packages");
  await run({
    command: python,
    args: ["-m", "pip", "install", "--quiet", "--target", target, ...wanted],
    capture: true,
  });
  const code = `from sluice_client import ApiClient, CheckRequest, ChecksApi, Configuration
checks = ChecksApi(ApiClient(Configuration(host="${service.http}")))
decision = checks.check(CheckRequest(attributes={"user": "generated in Python"}, cost=1))
print(decision.allowed, decision.remaining)`;
  const env = { PYTHONPATH: `${client}:${target}` };
  await expectOutput("Python, generated", "True 1\n", { command: python, args: ["-c", code], env });
}

try {
  const missing = await ensureComponents([components.java, components.openapiGenerator]);
  if (missing.length > 0) console.log("generated clients need java and openapi-generator");
  if (onPath("go") === undefined) console.log("Go: no go is here");
  else await tryGo();
  await tryPython();
} finally {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
