/**
 * `npm run first-refusal`: how long a newcomer waits, from an empty folder to the first refused request, one command a step: `npm install`
 * of a tarball, then the README's example (library), or `npx sluice-server` and the same request until it is refused (service).
 * npm's cache is empty, as on a new machine; `-- --warm` keeps the user's own. Prints a table, and fails if either journey takes
 * longer than a minute. In: the built packages, a registry. It is a measurement of this machine and its network, so `npm test` does not run it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { root, run } from "./run-command.mjs";

const { values: options } = parseArgs({ options: { warm: { type: "boolean", default: false } } });
const MOST_SECONDS = 60;
const folder = mkdtempSync(join(tmpdir(), "sluice-first-refusal-"));
const env = { ...process.env, ...(options.warm ? {} : { npm_config_cache: join(folder, "npm-cache") }) };

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {string} cwd
 */
async function must(command, args, cwd) {
  const { code, output } = await run({ command, args, cwd, env, capture: true });
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} failed:\n${output}`);
  return output;
}

/** @type {{ journey: string, step: string, seconds: number }[]} */
const steps = [];

/**
 * @template T
 * @param {string} journey
 * @param {string} step
 * @param {() => Promise<T>} work
 */
async function timed(journey, step, work) {
  const startMs = performance.now();
  const result = await work();
  steps.push({ journey, step, seconds: (performance.now() - startMs) / 1000 });
  return result;
}

/** @param {string} name */
function emptyFolder(name) {
  const made = join(folder, name);
  mkdirSync(made);
  return made;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  return String(port);
}

/** @param {string} tarball */
async function library(tarball) {
  const project = emptyFolder("library");
  await timed("library", "npm install sluice.tgz", () => must("npm", ["install", tarball], project));
  const readme = readFileSync(join(root, "packages", "sluice", "README.md"), "utf8");
  writeFileSync(join(project, "example.mjs"), /** @type {string} */ (/```js\n([\s\S]*?)```/.exec(readme)?.[1]));
  const printed = await timed("library", "node example.mjs", () => must("node", ["example.mjs"], project));
  if (!printed.includes("refused by per-user")) throw new Error(`nothing was refused:\n${printed}`);
}

/** @param {string} tarball */
async function service(tarball) {
  const project = emptyFolder("service");
  await timed("service", "npm install sluice-server.tgz", () => must("npm", ["install", tarball], project));
  const port = await freePort();
  const args = ["sluice-server", "--port", port, "--grpc-port", "0"];
  const served = spawn("npx", args, { cwd: project, env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    await timed("service", "npx sluice-server, until it serves", () => {
      let printed = "";
      return new Promise((resolve, reject) => {
        served.stdout.on("data", (text) => {
          printed += text;
          if (printed.includes("curl")) resolve(undefined);
        });
        served.once("exit", (code) => reject(new Error(`it ended with ${code}:\n${printed}`)));
      });
    });
    await timed("service", "POST /v1/check, until one is refused", async () => {
      for (let i = 0; i < 1_000; i++) {
        const response = await fetch(`http://127.0.0.1:${port}/v1/check`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: '{"attributes":{"user":"42"}}',
        });
        const decision = /** @type {{ allowed: boolean }} */ (await response.json());
        if (!decision.allowed) return;
      }
      throw new Error("nothing was refused");
    });
  } finally {
    // npx passes SIGTERM on to the service, which then drains for a few seconds; SIGINT it leaves to the terminal.
    served.removeAllListeners("exit");
    served.kill("SIGTERM");
    await Promise.race([once(served, "exit"), sleep(20_000, undefined, { ref: false })]);
  }
}

/** @param {string} name */
function packagesIn(name) {
  const lock = JSON.parse(readFileSync(join(folder, name, "node_modules", ".package-lock.json"), "utf8"));
  return Object.keys(lock.packages).length;
}

try {
  const packages = ["sluice", "server"].map((name) => join(root, "packages", name));
  await must("npm", ["pack", ...packages, "--silent", "--ignore-scripts"], folder);
  const tarballs = readdirSync(folder).filter((file) => file.endsWith(".tgz"));
  const tarballOf = (/** @type {RegExp} */ name) => join(folder, String(tarballs.find((file) => name.test(file))));
  await library(tarballOf(/^sluice-\d/));
  await service(tarballOf(/^sluice-server-/));
  console.log(`npm's cache: ${options.warm ? "the user's own" : "empty"}; Node ${process.versions.node}`);
  let isOver = false;
  for (const journey of ["library", "service"]) {
    const own = steps.filter((step) => step.journey === journey);
    const total = own.reduce((sum, { seconds }) => sum + seconds, 0);
    console.log(`\n${journey} (${packagesIn(journey)} packages)`);
    for (const { step, seconds } of own) console.log(`${seconds.toFixed(1).padStart(7)} s  ${step}`);
    console.log(`${total.toFixed(1).padStart(7)} s  from an empty folder to the first refused request`);
    isOver ||= total > MOST_SECONDS;
  }
  if (isOver) {
    console.log(`\nover ${MOST_SECONDS} s`);
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
