/**
 * Builds packages/guide: the documentation site, from docs/ into the service's package, which serves it under /docs/guide.
 * A process of its own writes it, so that `npm run docs` builds again with the generator as it is now.
 */
import { join } from "node:path";
import { refreshFolder } from "./refresh-folder.mjs";
import { root, run } from "./run-command.mjs";

process.exitCode = await refreshFolder(join(root, "packages", "server", "guide"), async (into) => {
  const writer = join(root, "packages", "guide", "src", "write-guide.mjs");
  return (await run({ command: process.execPath, args: [writer, into] })).code;
});
