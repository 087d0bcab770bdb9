/** Whether a folder, or the nearest one above it that exists, can be written: nothing is made to find out. */
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
    // Also where a part of the path is a file, or may not be entered.
    return false;
  }
}
