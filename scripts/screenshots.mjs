/**
 * `npm run screenshots`: writes the images of docs/images from the dashboard as it is, with real traffic on a real Redis Cluster. Build first.
 * pngquant gives them palettes: the guide, and with it the container image, holds all of them.
 */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { root, run, runTool } from "./run-command.mjs";

const folder = join(root, "docs", "images");
await mkdir(folder, { recursive: true });
const taken = await runTool({
  package: "vitest",
  bin: "vitest.mjs",
  args: ["run", "test/dashboard/pages.test.ts"],
  env: { SLUICE_SCREENSHOTS: "1" },
});
const files = (await readdir(folder)).filter((name) => name.endsWith(".png"));
const shrunk = await run({
  command: "pngquant",
  args: ["--force", "--ext", ".png", "--strip", "--skip-if-larger", "--speed", "1", "--nofs", "128", "--", ...files],
  cwd: folder,
});
// 98: some image would have grown, and stays as it is.
const isShrunk = shrunk.code === 0 || shrunk.code === 98;
if (!isShrunk)
  console.log("the images have no palettes: install pngquant (Debian package pngquant), and run this again");
process.exitCode = taken.code === 0 && !isShrunk ? 1 : taken.code;
