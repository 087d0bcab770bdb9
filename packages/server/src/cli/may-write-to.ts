/** Whether a folder, or its nearest existing ancestor, is writable. Creates nothing to find out. */
import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";

export function mayWriteTo(path: string): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return dirname(path) !== path && mayWriteTo(dirname(path));
    if (!found.isDirectory()) return false;
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    // Also if part of the path is a file, or inaccessible.
    return false;
  }
}
