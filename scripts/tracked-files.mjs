/**
 * The files of a checkout that are the project's: what git tracks and is there. A note or a sketch that lies beside them is its owner's.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { run } from "./run-command.mjs";

/**
 * @param {string} folder
 * @returns {Promise<string[] | undefined>} undefined where git knows nothing of it
 */
export async function trackedFiles(folder) {
  const args = ["ls-files", "-z", "--deduplicate"];
  const { code, output } = await run({ command: "git", args, cwd: folder, capture: true });
  if (code !== 0) return undefined;
  return output.split("\0").filter((file) => file !== "" && existsSync(join(folder, file)));
}
