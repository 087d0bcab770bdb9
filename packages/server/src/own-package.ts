/** This package's own files, wherever its code runs from: `src`, `dist` and `bundle` are siblings in it. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const manifest = new URL("../package.json", import.meta.url);

export const protoFolder = fileURLToPath(new URL("../proto", import.meta.url));

/** Built from packages/dashboard; absent in a checkout that was never built. */
export const consoleFolder = fileURLToPath(new URL("../console", import.meta.url));

/** Built from packages/guide and docs/. */
export const guideFolder = fileURLToPath(new URL("../guide", import.meta.url));

export function packageVersion(): string {
  return JSON.parse(readFileSync(manifest, "utf8")).version;
}
