#!/usr/bin/env node
// `npx sluice-server`: serves. The same as `sluice serve`, with the same options.
import { endWithParent } from "./end-with-parent.js";

// Under npx alone: a daemon's parent may leave.
if (process.env.npm_command === "exec") endWithParent();
process.argv.splice(2, 0, "serve");
await import("./sluice.js");
