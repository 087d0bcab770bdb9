/** docs/languages: the program of each page, as the page has it, against a service; and a client that openapi-generator makes. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Rule } from "sluice";
import { beforeAll, describe, expect, test } from "vitest";
import { root } from "../../scripts/run-command.mjs";
import { type ComponentId, components, whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { startTestService } from "./running-service.js";

const execute = promisify(execFile);
const rules: Rule[] = [{ id: "per-user", key: ["user"], algorithm: "rolling-window", limit: 2, window: "1h" }];
const TOKEN = "a-token-of-the-data-plane";
const printed = "allowed, 1 left\nallowed, 0 left\nrefused by per-user\n";
/** For programs that end soon: the compiler that takes least time itself. */
const quickJava = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
const example = (file: string) => join(root, "examples/languages", file);

test.each([
  ["go", "check.go"],
  ["python", "check.py"],
  ["java", "Check.java"],
  ["php", "check.php"],
  ["curl", "check.sh"],
])("docs/languages/%s.md shows the example as it is", (page, file) => {
  const text = readFileSync(join(root, `docs/languages/${page}.md`), "utf8");
  expect(text).toContain(`\n${readFileSync(example(file), "utf8").trimEnd()}\n\`\`\``);
  expect(text).toContain(`examples/languages/${file}`);
});

describe.each<[ComponentId, string]>([
  ["python", "check.py"],
  ["java", "Check.java"],
  ["php", "check.php"],
  ["curl", "check.sh"],
])("%s", (component, file) => {
  const run = async (env: Record<string, string>) => {
    const quick = component === "java" ? quickJava : [];
    const command = component === "curl" ? "sh" : components[component].find()!;
    return await execute(command, [...quick, example(file)], {
      env: { PATH: process.env.PATH!, SLUICE_TIMEOUT: "60", ...env },
    });
  };

  test.skipIf(whyMissing(component))("is allowed, refused, and told who refuses", async () => {
    await using service = await startTestService({ rules, settings: { "api-token": TOKEN } });
    const { stdout } = await run({ SLUICE_SERVER: service.http, SLUICE_API_TOKEN: TOKEN });
    expect(stdout).toBe(printed);
  });

  test.skipIf(whyMissing(component))("lets requests pass where nobody answers", async () => {
    const service = await startTestService({ rules });
    await service.close();
    expect((await run({ SLUICE_SERVER: service.http })).stdout).toBe("not asked, passes\n".repeat(3));
  });
});

/** Without the optimiser and C: the standard library is compiled with the program where Go's cache is empty, and that halves it. */
describe.skipIf(whyMissing("go"))("go", () => {
  const program = join(makeTempFolder("go"), "check");
  const run = async (env: Record<string, string>) =>
    await execute(program, [], { env: { PATH: process.env.PATH!, SLUICE_TIMEOUT: "60", ...env } });

  beforeAll(async () => {
    const args = ["build", "-gcflags=all=-N -l", "-ldflags=-s -w", "-o", program, example("check.go")];
    await execute("go", args, { env: { ...process.env, CGO_ENABLED: "0" } });
  }, 600_000);

  test("is allowed, refused, and told who refuses", async () => {
    await using service = await startTestService({ rules, settings: { "api-token": TOKEN } });
    const { stdout } = await run({ SLUICE_SERVER: service.http, SLUICE_API_TOKEN: TOKEN });
    expect(stdout).toBe(printed);
  });

  test("lets requests pass where nobody answers", async () => {
    const service = await startTestService({ rules });
    await service.close();
    expect((await run({ SLUICE_SERVER: service.http })).stdout).toBe("not asked, passes\n".repeat(3));
  });
});

test.skipIf(whyMissing("openapiGenerator", "java"))(
  "a client that openapi-generator makes of the document calls the service, by names that read well",
  async () => {
    await using service = await startTestService({ rules, settings: { "api-token": TOKEN } });
    const folder = makeTempFolder("generated");
    const document = join(folder, "openapi.json");
    writeFileSync(document, await (await fetch(`${service.http}/openapi.json`)).text());
    const args = ["generate", "-g", "typescript-fetch", "-i", document, "-o", join(folder, "client")];
    const { stdout } = await execute(
      components.java.find()!,
      [
        ...quickJava,
        "-jar",
        components.openapiGenerator.find()!,
        ...args,
        "--global-property",
        "apis,models,supportingFiles,apiDocs=false,modelDocs=false",
      ],
      { maxBuffer: 2 ** 26 },
    );
    expect(stdout.split("\n").filter((line) => / ERROR |invalid/i.test(line))).toEqual([]);
    const client = await import(/* @vite-ignore */ pathToFileURL(join(folder, "client/index.ts")).href);
    const checks = new client.ChecksApi(new client.Configuration({ basePath: service.http, accessToken: TOKEN }));
    const first = await checks.check({ checkRequest: { attributes: { user: "42" }, cost: 2 } });
    expect(first).toMatchObject({ allowed: true, remaining: 0 });
    const { decisions } = await checks.checkBatch({ batchRequest: { requests: [{ attributes: { user: "42" } }] } });
    expect(decisions[0]).toMatchObject({ allowed: false, violated: ["per-user"] });
    expect((await checks.explain({ checkRequest: { attributes: { user: "42" } } })).rules[0]).toMatchObject({
      rule: "per-user",
      matched: true,
    });
    const stranger = new client.ChecksApi(new client.Configuration({ basePath: service.http }));
    const refused = await stranger.check({ checkRequest: { attributes: {} } }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ response: { status: 401 } });
    const names = Object.getOwnPropertyNames(client.AdministrationApi.prototype);
    expect(names).toEqual(expect.arrayContaining(["listRules", "promoteRule", "rollBack", "createToken"]));
  },
);
