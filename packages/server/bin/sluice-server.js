#!/usr/bin/env node
// `npx sluice-server` is `sluice serve`, with the same options.
import { endWithParent } from "./end-with-parent.js";

// Only under npx: a daemon's parent may exit.
if (process.env.npm_command === "exec") endWithParent();
process.argv.splice(2, 0, "serve");
await import("./sluice.js");
