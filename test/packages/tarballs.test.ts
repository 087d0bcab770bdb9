/** The packages as users get them: what is in the tarballs, and the README's example on every runtime that the README names. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { COLLECTOR_FLAGS } from "../../packages/server/src/service/collector-flags.js";
import { root, run, runTool } from "../../scripts/run-command.mjs";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { leashProcess } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { bytesIn, makeImageRoot, runInImage } from "./image-root.js";
import { execute, type Installed, installTarballs } from "./installed-tarballs.js";

let installed: Installed;
beforeAll(async () => {
  installed = await installTarballs();
});

const modules = () => join(installed.folder, "node_modules");
const filesOf = (name: string): string[] =>
  readdirSync(join(modules(), name), { recursive: true, encoding: "utf8" }).filter(
    (file) => !file.startsWith("node_modules"),
  );

describe.each(["sluice", "sluice-server"])("the tarball of %s", (name) => {
  test("holds README and licence, no source maps, no tests, and no line that names a map", () => {
    const files = filesOf(name);
    expect(files).toEqual(expect.arrayContaining(["README.md", "LICENSE", "package.json"]));
    expect(files.filter((file) => /\.map$|\.test\.|\.ts$|\.lua$/.test(file) && !file.endsWith(".d.ts"))).toEqual([]);
    const code = files.filter((file) => /\.(js|css)$/.test(file));
    expect(code.length).toBeGreaterThan(3);
    const naming = code.filter((file) => /^\/[/*]# sourceMappingURL=/m.test(read(join(modules(), name, file))));
    expect(naming).toEqual([]);
  });

  test("says to registries who may see it, that its origin is proven, and which Node it needs", () => {
    const manifest = JSON.parse(read(join(modules(), name, "package.json")));
    expect(manifest.publishConfig).toEqual({ access: "public", provenance: true });
    expect(manifest.engines).toEqual({ node: ">=20.19" });
    expect(manifest.license).toBe("Apache-2.0");
  });
});

const read = (file: string): string => readFileSync(file, "utf8");

test("npm warns of nothing: no engine that is too old, nothing deprecated", () => {
  // Settings of the machine's own npm; and protobufjs, whose script only compares versions and need not run.
  const expected = /^npm warn (Unknown .*config|install-scripts).*\n/gim;
  expect(installed.npmOutput.replaceAll(expected, "")).not.toMatch(/warn|deprecated/i);
  expect([...installed.npmOutput.matchAll(/install-scripts +(\S+)@\S+ \(/g)].map(([, name]) => name)).toEqual(
    installed.npmOutput.includes("install-scripts") ? ["protobufjs"] : [],
  );
});

test("every package that is installed with them runs on the oldest Node that they name", async () => {
  const { stdout } = await execute("npm", ["query", "*", "--json"], { cwd: installed.folder, maxBuffer: 2 ** 26 });
  const packages: { name: string; engines?: { node?: string } }[] = JSON.parse(stdout);
  expect(packages.length).toBeGreaterThan(20);
  const semver = createRequire(import.meta.url)("semver") as { satisfies(version: string, range: string): boolean };
  const tooNew = packages.filter(({ engines }) => engines?.node && !semver.satisfies("20.19.0", engines.node));
  expect(tooNew.map(({ name, engines }) => `${name} needs Node ${engines!.node}`)).toEqual([]);
});

test("the service's bundle imports only what its manifest names", () => {
  const folder = join(modules(), "sluice-server");
  const { dependencies } = JSON.parse(read(join(folder, "package.json")));
  const code = readdirSync(join(folder, "bundle"))
    .filter((file) => file.endsWith(".js"))
    .map((file) => read(join(folder, "bundle", file)))
    .join("\n");
  const imported = [
    ...code.matchAll(/(?:^import|\bfrom|\b(?:import|__require)\()\s*"(@[\w.-]+\/[\w.-]+|[\w-]+)[^"]*"/gm),
  ]
    .map(([, name]) => name!)
    .filter((name) => !createRequire(import.meta.url)("node:module").builtinModules.includes(name) && name !== "node");
  // Of Fastify, for schemas that the service compiles itself; of grpc-js, for channelz, which is not served; of supports-color, which asks
  // whether it is there.
  const neverReached = /^(@fastify\/(ajv|fast-json-stringify)-compiler|@grpc\/proto-loader|supports-color)$/;
  const missing = [...new Set(imported)].filter((name) => !(name in dependencies) && !neverReached.test(name));
  expect(missing).toEqual([]);
});

test("bundled code comes with its licences", () => {
  const folder = join(modules(), "sluice-server");
  const service = read(join(folder, "bundle/THIRD-PARTY-NOTICES.txt"));
  for (const name of ["fastify", "ioredis", "commander"])
    expect(service).toMatch(new RegExp(`^${name} [\\d.]+ \\(MIT\\)$`, "m"));
  expect(service).not.toMatch(/^sluice /m);
  expect(read(join(folder, "console/THIRD-PARTY-NOTICES.md"))).toMatch(/react-dom/);
});

describe("tools that read packages find nothing wrong", () => {
  test.each(["sluice", "server"] as const)("publint: %s", async (name) => {
    const { code, output } = await run({
      command: process.execPath,
      args: ["node_modules/publint/src/cli.js", installed.tarballs[name], "--strict"],
      capture: true,
    });
    // Who publishes names the repository: it is not known here (docs/releasing.md).
    const findings = output.split("\n").filter((line) => /^\d+\. /.test(line) && !/repository/.test(line));
    expect({ findings, code }).toEqual({ findings: [], code: 0 });
  });

  test("attw: the types of every entry point resolve, for import, require and bundlers", async () => {
    const { code, output } = await runTool({
      package: "@arethetypeswrong/cli",
      bin: "dist/index.js",
      // Resolution as before Node had `exports` is left out: TypeScript itself has given it up.
      args: [installed.tarballs.sluice, "--profile", "node16", "--format", "json"],
      capture: true,
    });
    expect(code, output).toBe(0);
    expect(Object.keys(JSON.parse(output).analysis.entrypoints).length).toBeGreaterThan(10);
  });
});

const example = /```js\n([\s\S]*?)```/.exec(read(join(root, "packages/sluice/README.md")))![1]!;
const printed = "1 left\n0 left\nrefused by per-user\n";
const asCommonJs = `(async () => {${example.replace(/import (.*) from (".*");/, "const $1 = require($2);")}})();`;

function write(name: string, text: string): string {
  const file = join(installed.folder, name);
  writeFileSync(file, text);
  return file;
}

describe("the README's example", () => {
  test.each([
    ["an ES module", "example.mjs", () => example],
    ["CommonJS", "example.cjs", () => asCommonJs],
  ])("prints what the README says, as %s in Node", async (_kind, name, code) => {
    const { stdout } = await execute(process.execPath, [write(name, code())]);
    expect(stdout).toBe(printed);
  });

  const others = [
    ["bun", (file: string) => ["run", file]],
    ["deno", (file: string) => ["run", "--node-modules-dir=manual", "--quiet", "-A", file]],
  ] as const;
  describe.each(others)("in %s", (runtime, args) => {
    const env = { ...process.env, DENO_NO_UPDATE_CHECK: "1", HOME: "/nonexistent", DENO_DIR: "deno-cache" };
    const runScript = (name: string, code: string) =>
      execute(components[runtime].find()!, args(write(name, code)), { cwd: installed.folder, env });

    test.skipIf(whyMissing(runtime))("prints the same", async () => {
      expect((await runScript(`${runtime}.mjs`, example)).stdout).toBe(printed);
    });

    test.skipIf(whyMissing(runtime, "redis"))("decides on Redis", async () => {
      const redis = await startRedis();
      const store = `store: redisStore("${redis.url}", { deadlineMs: 5_000 }), rules:`;
      const code = `import { redisStore } from "sluice/redis";\n${example.replace("rules:", store)}`;
      expect((await runScript(`${runtime}-redis.mjs`, code)).stdout).toBe(printed);
      await redis.stop();
    });
  });
});

describe("TypeScript, strict, with the declarations themselves checked", () => {
  const compile = async (files: Record<string, string>, options: Record<string, unknown>) => {
    for (const [name, code] of Object.entries(files)) write(name, code);
    const strict = { strict: true, noEmit: true, skipLibCheck: false, exactOptionalPropertyTypes: true };
    const compilerOptions = { ...strict, target: "ES2023", module: "nodenext", ...options };
    const config = write("tsconfig.json", JSON.stringify({ compilerOptions, files: Object.keys(files) }));
    return await runTool({ package: "typescript", bin: "bin/tsc", args: ["-p", config], capture: true });
  };
  const inFunction = (code: string) => `import { createLimiter } from "sluice";
export const main = async () => {${code.replace(/^import .*$/m, "")}};`;

  test("the README's example compiles as an ES module and as CommonJS, and mistakes do not", async () => {
    const mistakes = `import { createLimiter, type Decision } from "sluice";
// @ts-expect-error: no such name in this entry point
import { rateLimit } from "sluice/testing";
// @ts-expect-error: no such algorithm
const limiter = createLimiter({ rules: [{ id: "a", key: [], algorithm: "leaky", limit: 1, window: "1s" }] });
const decision: Decision = await limiter.check({ user: "42" });
// @ts-expect-error: a number
const wait: string = decision.retryAfterMs;
export { rateLimit, wait };
`;
    const files = { "example.mts": example, "example.cts": inFunction(example), "mistakes.mts": mistakes };
    const { code, output } = await compile(files, {
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
    });
    expect({ code, output }).toEqual({ code: 0, output: "" });
  });

  test("sluice/client needs no types of Node: those of a browser are enough", async () => {
    const client = `import { createClient, createFetch } from "sluice/client";
const client = createClient({ server: "http://127.0.0.1:8080" });
export const polite: typeof fetch = createFetch();
export const answer = client.check({ user: "42" }).then(({ allowed }) => allowed satisfies boolean);
`;
    const browser = { lib: ["ES2023", "DOM"], types: [], module: "esnext", moduleResolution: "bundler" };
    const { code, output } = await compile({ "client.ts": client }, browser);
    expect({ code, output }).toEqual({ code: 0, output: "" });
  });
});

/** Under root's tests as nobody: a service must not need more. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

test("npx sluice-server serves with one command, as a user who may write nowhere else", async () => {
  const home = join(installed.folder, "home");
  mkdirSync(home);
  if (nobody.uid !== undefined) chownSync(home, nobody.uid, nobody.gid);
  let pushed: (path: string) => void = () => undefined;
  const firstPush = new Promise<string>((resolve) => {
    pushed = resolve;
  });
  const collector = createServer((request, response) => {
    pushed(request.url!);
    response.end("{}");
  });
  await once(collector.listen(0, "127.0.0.1"), "listening");
  const otlp = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const flags = [
    "--port",
    "0",
    "--grpc-port",
    "0",
    "--data-folder",
    join(home, "data folder"),
    "--otlp",
    otlp,
    "--drain-delay",
    "0",
  ];
  // Offline: npx runs the package that is installed.
  const child = spawn("npx", ["--offline", "--prefix", installed.folder, "sluice-server", ...flags], {
    cwd: home,
    env: { PATH: process.env.PATH, HOME: home, NODE_ENV: "production" },
    stdio: ["ignore", "pipe", "pipe"],
    ...nobody,
  });
  leashProcess(child);
  let output = "";
  const http = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk;
      if (output.includes("/v1/check -H")) resolve(/HTTP +(\S+)/.exec(output)![1]!);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("close", () => reject(new Error(output)));
  });
  const verdicts: boolean[] = [];
  const check = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"attributes":{"user":"x"}}',
  };
  for (let i = 0; i < 6; i++) {
    const { allowed } = (await (await fetch(`${http}/v1/check`, check)).json()) as { allowed: boolean };
    verdicts.push(allowed);
  }
  expect(verdicts).toEqual([true, true, true, true, true, false]);
  const page = await (await fetch(http)).text();
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)![1]!;
  for (const path of [script, "/docs/", "/docs/static/swagger-ui-bundle.js", "/openapi.json", "/metrics"]) {
    const answer = await fetch(http + path, { headers: { connection: "close" } });
    // Read to its end: half a response would hold up the end of the service.
    await answer.arrayBuffer();
    expect(answer.status, path).toBe(200);
  }
  expect((await fetch(`${http}/THIRD-PARTY-NOTICES.md`, { headers: { connection: "close" } })).status).toBe(404);
  // npx ends at once, its shell too; the service then ends by itself, after its last figures are sent.
  const ended = once(child.stdout, "close");
  child.kill("SIGTERM");
  await ended;
  expect(await firstPush).toMatch(/^\/v1\/(metrics|traces)$/);
  collector.close();
});

test("the packages bring no compiled code but libsql's", () => {
  const native = readdirSync(modules(), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".node"));
  expect(native.filter((file) => !file.startsWith("@libsql"))).toEqual([]);
  expect(existsSync(join(modules(), "sluice", "node_modules"))).toBe(false);
});

describe.skipIf(whyMissing("node24", "binutils"))(
  "the image's root file system, made as the Dockerfile makes it",
  () => {
    let folder: string;
    beforeAll(async () => {
      folder = await makeImageRoot(installed.folder);
    });
    const outputOf = async (child: ReturnType<typeof runInImage>): Promise<string> => {
      let output = "";
      for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (chunk) => (output += chunk));
      await once(child, "close");
      return output;
    };

    test("has less than 150 MB, no shell and no npm", () => {
      const bytes = bytesIn(folder);
      console.log(`the image's root file system: ${(bytes / 1e6).toFixed(1)} MB`);
      expect(bytes).toBeGreaterThan(50e6);
      expect(bytes).toBeLessThan(150e6);
      expect(readdirSync(folder).sort()).toEqual(["app", "data", "dev", "etc", "lib", "lib64", "proc", "tmp", "usr"]);
      expect(readdirSync(join(folder, "usr/local/bin"))).toEqual(["node"]);
      expect(existsSync(join(folder, "usr/bin"))).toBe(false);
    });

    // A chroot and a mount need root's rights, which tests have in CI.
    test.skipIf(process.getuid?.() !== 0)(
      "runs Node 24 as user 65532, who can write /data and nothing else",
      async () => {
        const code = `const { writeFileSync } = require("node:fs");
const may = (path) => { try { writeFileSync(path, ""); return "written"; } catch (error) { return error.code; } };
console.log(JSON.stringify([process.versions.node.split(".")[0], process.getuid(), process.getgid(), ...["/data/x", "/x", "/app/x", "/tmp/x"].map(may)]));`;
        const output = await outputOf(runInImage(folder, ["-e", code]));
        expect(JSON.parse(output.split("\n").find((line) => line.startsWith("["))!)).toEqual([
          ...["24", 65_532, 65_532],
          ...["written", "EROFS", "EROFS", "EROFS"],
        ]);
      },
    );

    test.skipIf(process.getuid?.() !== 0)(
      "serves until the first refusal, is healthy, and ends on SIGTERM",
      async () => {
        const service = "/app/node_modules/sluice-server/bin/sluice.js";
        const child = runInImage(folder, [
          ...COLLECTOR_FLAGS,
          service,
          "serve",
          "--port",
          "0",
          "--grpc-port",
          "0",
          "--drain-delay",
          "0",
        ]);
        let output = "";
        const http = await new Promise<string>((resolve, reject) => {
          for (const stream of [child.stdout!, child.stderr!]) {
            stream.on("data", (chunk) => {
              output += chunk;
              if (output.includes("/v1/check -H")) resolve(/HTTP +(\S+)/.exec(output)![1]!);
            });
          }
          child.once("close", () => reject(new Error(output)));
        });
        const headers = { "content-type": "application/json", connection: "close" };
        const check = { method: "POST", headers, body: '{"attributes":{"user":"x"},"cost":3}' };
        const verdicts: boolean[] = [];
        for (let i = 0; i < 2; i++) {
          verdicts.push(((await (await fetch(`${http}/v1/check`, check)).json()) as { allowed: boolean }).allowed);
        }
        expect(verdicts).toEqual([true, false]);
        const dockerfile = read(join(root, "deploy/docker/Dockerfile"));
        const [, health] = /^ +CMD \["node", "-e", "(.+)"\]$/m.exec(dockerfile)!;
        const probe = runInImage(folder, ["-e", health!.replace("http://127.0.0.1:8080", http)]);
        expect(await once(probe, "exit")).toEqual([0, null]);
        const ended = once(child, "exit");
        child.kill("SIGTERM");
        expect(await ended).toEqual([0, null]);
      },
    );
  },
);
