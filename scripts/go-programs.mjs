/**
 * Programs that only Go's module proxy brings, or what they are made of. Each has a folder in go-programs/ whose go.mod and go.sum pin its version and the hashes of all
 * that it needs, old enough for Debian's Go (1.19). In: the program's name. Out: its file under .cache/programs, which later runs find again.
 * Nothing of it is in the packages or in the repository.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run-command.mjs";

/** @satisfies {Record<string, { version: string, package: string }>} */
const programs = {
  h2spec: { version: "2.2.1", package: "github.com/summerwind/h2spec/cmd/h2spec" },
  // Of our own: grpcurl takes four minutes to build. The version goes up with its source, or the one that was built before is found.
  "grpc-client": { version: "2", package: "." },
};

/** @typedef {keyof typeof programs} GoProgramName */

/** Where Go's cache is empty, most of a build is the standard library; the example in Go is built by the same flags, and finds it compiled. */
const quickly = ["-gcflags=all=-N -l", "-ldflags=-s -w"];

const cache = join(root, ".cache", "programs");

/** @param {GoProgramName} name */
function fileOf(name) {
  return join(cache, `${name}-${programs[name].version}-${process.arch}`, name);
}

/** @param {GoProgramName} name */
export function findGoProgram(name) {
  return existsSync(fileOf(name)) ? fileOf(name) : undefined;
}

/**
 * @param {GoProgramName} name
 * @returns {Promise<string>} what Go printed, for the case that the program is still not there
 */
export async function installGoProgram(name) {
  mkdirSync(cache, { recursive: true });
  const staging = mkdtempSync(join(cache, ".staging-"));
  try {
    const { code, output } = await run({
      command: "go",
      args: ["build", "-mod=readonly", ...quickly, "-o", join(staging, name), programs[name].package],
      cwd: join(root, "scripts", "go-programs", name),
      // The Go that is here builds it; another one is not fetched.
      env: { CGO_ENABLED: "0", GOTOOLCHAIN: "local" },
      capture: true,
    });
    if (code !== 0) return output;
    const folder = join(fileOf(name), "..");
    // A neighbour that built it first has won.
    if (!existsSync(folder)) renameSync(staging, folder);
    return output;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}
