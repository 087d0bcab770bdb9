/**
 * `npm run image`: builds deploy/docker/Dockerfile by buildah (root, no daemon, chroot isolation), starts the service from the image as the
 * image's own user, asks it until a request is refused, and ends it by SIGTERM. Prints size, user and verdicts; exit status 1 if one is wrong.
 * `-- --local-base`: where no registry of images can be reached, the base image is made here, of Debian (debootstrap) and the Node 24 that
 * npm carries. Takes minutes, so `npm test` does not run it; it makes the image's root by the same script and runs it read-only.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { root, run } from "./run-command.mjs";
import { components, ensureComponents, onPath } from "./system-components.mjs";

const { values: options } = parseArgs({ options: { "local-base": { type: "boolean", default: false } } });
const BASE = "docker.io/library/node:24-bookworm-slim";
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";
const MOST_BYTES = 150_000_000;
const PORT = "18091";
const needed = ["buildah", ...(options["local-base"] ? ["debootstrap"] : [])];
const missing = needed.filter((name) => !onPath(name));
if (missing.length > 0 || process.getuid?.() !== 0) {
  console.log(`npm run image: expected root and ${needed.join(", ")}; missing: ${missing.join(", ") || "root"}`);
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "sluice-image-"));
// A store of its own, on any file system: nothing of the machine's images is seen or changed.
const store = ["--root", join(folder, "store"), "--runroot", join(folder, "run"), "--storage-driver", "vfs"];

/**
 * @param {string} command
 * @param {readonly string[]} args
 */
async function must(command, args) {
  const { code, output } = await run({ command, args, capture: true });
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} failed:\n${output}`);
  return output.trim();
}

/** @param {readonly string[]} args */
const buildah = (...args) => must("buildah", [...store, ...args]);

async function makeBase() {
  await ensureComponents([components.node24]);
  const base = join(folder, "base");
  await must("debootstrap", ["--variant=minbase", "--include=ca-certificates", "bookworm", base]);
  const modules = join(base, "usr/local/lib/node_modules");
  mkdirSync(modules, { recursive: true });
  cpSync(/** @type {string} */ (components.node24.find()), join(base, "usr/local/bin/node"));
  const npm = dirname(dirname(realpathSync(await must("which", ["npm"]))));
  cpSync(npm, join(modules, "npm"), { recursive: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(base, "usr/local/bin/npm"));
  // Where this machine trusts an authority of its own, the build must, too; the image takes nothing from this stage but /image.
  if (existsSync(CERTIFICATES)) cpSync(CERTIFICATES, join(base, CERTIFICATES));
  writeFileSync(join(base, "root/.npmrc"), `cafile=${CERTIFICATES}\n`);
  const container = await buildah("from", "scratch");
  await buildah("copy", "--quiet", container, base, "/");
  await buildah("config", "--env", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", container);
  await buildah("commit", "--quiet", container, BASE);
  await buildah("rm", container);
}

/** @param {string} container */
async function tryService(container) {
  /** @type {string[]} */
  const entry = JSON.parse(
    /^ENTRYPOINT (.+)$/m.exec(readFileSync(join(root, "deploy/docker/Dockerfile"), "utf8"))?.[1] ?? "",
  );
  const command = [...entry, "serve"];
  const args = ["run", "--isolation", "chroot", container, "--", ...command, "--port", PORT, "--grpc-port", "0"];
  const child = spawn("buildah", [...store, ...args, "--drain-delay", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let printed = "";
  child.stdout.on("data", (text) => {
    printed += text;
  });
  for (let i = 0; i < 300 && !printed.includes("curl"); i++) await sleep(100);
  const verdicts = [];
  for (let i = 0; i < 6; i++) {
    const response = await fetch(`http://127.0.0.1:${PORT}/v1/check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"attributes":{"user":"42"}}',
    });
    verdicts.push(/** @type {{ allowed: boolean }} */ (await response.json()).allowed);
  }
  const pid = await must("pgrep", ["-n", "-f", `sluice.js serve --port ${PORT}`]);
  const user = await must("ps", ["-o", "uid=", "-p", pid]);
  process.kill(Number(pid), "SIGTERM");
  const [code] = await ended;
  return { verdicts, user: user.trim(), code };
}

try {
  if (options["local-base"]) await makeBase();
  const pull = options["local-base"] ? ["--pull-never"] : [];
  await buildah(
    "bud",
    "--isolation",
    "chroot",
    "--format",
    "docker",
    ...pull,
    "-f",
    "deploy/docker/Dockerfile",
    "-t",
    "sluice",
    root,
  );
  const { Docker: image } = JSON.parse(await buildah("inspect", "--type", "image", "localhost/sluice"));
  const container = await buildah("from", "--pull-never", "localhost/sluice");
  const bytes = Number((await must("du", ["-sb", await buildah("mount", container)])).split("\t")[0]);
  const { verdicts, user, code } = await tryService(container);
  console.log(`size     ${(bytes / 1e6).toFixed(1)} MB`);
  console.log(`user     ${user}; image ${image.config.User}; health check ${image.config.Healthcheck ? "yes" : "no"}`);
  console.log(`verdicts ${verdicts.map((allowed) => (allowed ? "allowed" : "refused")).join(", ")}`);
  console.log(`SIGTERM  exit status ${code}`);
  const isRight = verdicts.filter(Boolean).length === 5 && verdicts[5] === false && code === 0;
  if (!isRight || user !== "65532" || image.config.User !== "65532:65532" || bytes > MOST_BYTES) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
