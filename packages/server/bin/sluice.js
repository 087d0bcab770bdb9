#!/usr/bin/env node
// The `sluice` command: the program itself is bundle/main.js. `serve` has an entry of its own, which reads less before it opens its ports.
import * as module from "node:module";
import { fileURLToPath } from "node:url";

// Node.js 22 and later keep compiled code, here beside the program, where it is as safe as the program itself. Where the folder cannot be
// written, every start compiles. A service may never end by itself, so its code is kept soon after its first start: once, in some 50 ms.
module.enableCompileCache?.(fileURLToPath(new URL("../.compile-cache", import.meta.url)));
setTimeout(() => module.flushCompileCache?.(), 10_000).unref();
const isService = process.argv[2] === "serve";
const { main } = isService ? await import("../bundle/quick-serve.js") : await import("../bundle/main.js");

await main(process.argv);
// All is closed and written. To end by itself, Node.js would first give its memory back, for 50 to 100 ms in which nobody serves the ports.
if (isService) process.exit();
