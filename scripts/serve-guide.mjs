/**
 * `npm run docs`: builds the documentation site and serves it on 127.0.0.1, as the service does under /docs/guide: same files, same headers.
 * A change in docs/ or examples/ builds it again. `npm run docs -- --port 9000`; port 8090 without it, 0 for any that is free.
 */
import { watch } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import Fastify from "fastify";
import { root, run } from "./run-command.mjs";

const { port } = parseArgs({ options: { port: { type: "string", default: "8090" } } }).values;
if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
  console.error(`--port: expected a number from 0 to 65535, got ${JSON.stringify(port)}`);
  process.exit(2);
}

const build = async () =>
  (await run({ command: process.execPath, args: [join(root, "scripts", "build-guide.mjs")] })).code;

const code = await build();
if (code !== 0) process.exit(code);

const server = pathToFileURL(join(root, "packages", "server", "dist")).href;
/** @type {{ registerGuide(app: unknown, options: { folder: string, rereads: boolean }): void }} */
const { registerGuide } = await import(`${server}/administration/guide-files.js`);
const app = Fastify({ forceCloseConnections: true });
app.get("/", async (_request, reply) => reply.redirect("/docs/guide/"));
registerGuide(app, { folder: join(root, "packages", "server", "guide"), rereads: true });
console.log(`the guide: ${await app.listen({ host: "127.0.0.1", port: Number(port) })}/docs/guide/`);

/** @type {NodeJS.Timeout | undefined} */
let waiting;
for (const folder of ["docs", "examples"]) {
  watch(join(root, folder), { recursive: true }, () => {
    // Editors write a file in several steps.
    clearTimeout(waiting);
    waiting = setTimeout(async () => console.log((await build()) === 0 ? "built again" : "not built: see above"), 200);
  });
}
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => app.close().then(() => process.exit(0)));
