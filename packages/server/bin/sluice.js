#!/usr/bin/env node
// The `sluice` command: the program itself is bundle/main.js.
import * as module from "node:module";
import { fileURLToPath } from "node:url";

// Node.js 22 and later keep compiled code, here beside the program, where it is as safe as the program itself. Where the folder cannot be
// written, every start compiles. A service may never end by itself, so its code is kept soon after its first start: once, in some 50 ms.
module.enableCompileCache?.(fileURLToPath(new URL("../.compile-cache", import.meta.url)));
setTimeout(() => module.flushCompileCache?.(), 10_000).unref();
const { main } = await import("../bundle/main.js");

await main(process.argv);
