/**
 * Replaces a build's output file by file: a service that runs from `dist` while it is built again keeps every file that did not change,
 * and never meets a folder that is gone.
 * In: the folder, and a build that writes into the empty one it is given. Out: the build's exit code; on failure `dist` stays as it was.
 */
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, utimes } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";

/**
 * @param {string} folder
 * @param {(into: string) => Promise<number>} build
 */
export async function refreshFolder(folder, build) {
  // Beside the folder: relative paths in source maps stay true, and a rename stays on one file system.
  const fresh = await mkdtemp(join(dirname(folder), `.${basename(folder)}-`));
  try {
    const code = await build(fresh);
    if (code === 0) await bringUpToDate(fresh, folder);
    return code;
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/**
 * @param {string} fresh
 * @param {string} folder
 */
async function bringUpToDate(fresh, folder) {
  const wanted = await filesIn(fresh);
  for (const file of wanted) {
    const target = join(folder, file);
    if (await haveEqualBytes(join(fresh, file), target)) continue;
    await mkdir(dirname(target), { recursive: true });
    // By rename, so that no reader sees half a file.
    await copyFile(join(fresh, file), `${target}.next`);
    await rename(`${target}.next`, target);
  }
  // A file that was renamed in the sources would otherwise live on in the package.
  const stale = (await filesIn(folder)).filter((file) => !wanted.includes(file));
  for (const file of stale) await rm(join(folder, file));
  // `npm start` compares times: a build that changed nothing still is newer than the sources.
  const now = new Date();
  if (wanted[0] !== undefined) await utimes(join(folder, wanted[0]), now, now);
}

/** @param {string} folder */
async function filesIn(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

/**
 * @param {string} fresh
 * @param {string} target
 */
async function haveEqualBytes(fresh, target) {
  try {
    return (await readFile(fresh)).equals(await readFile(target));
  } catch {
    return false;
  }
}
