#!/usr/bin/env node
// The `sluice` command; the program is bundle/main.js. `serve` has its own entry point, which loads less code before it opens its ports.
import * as module from "node:module";
import { fileURLToPath } from "node:url";

// Node.js 22 and later cache compiled code, here beside the program, where it is as safe as the program itself. If the folder is read-only,
// every start compiles. A service may never exit by itself, so flush the cache soon after its first start: once, for about 50 ms.
module.enableCompileCache?.(fileURLToPath(new URL("../.compile-cache", import.meta.url)));
setTimeout(() => module.flushCompileCache?.(), 10_000).unref();
const isService = process.argv[2] === "serve";
const { main } = isService ? await import("../bundle/quick-serve.js") : await import("../bundle/main.js");

await main(process.argv);
// Everything is closed and written. Without an explicit exit, Node.js would first free its memory, 50 to 100 ms in which nothing serves the
// ports.
if (isService) process.exit();
