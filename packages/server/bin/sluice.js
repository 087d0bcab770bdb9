#!/usr/bin/env node
// The `sluice` command: the program itself is dist/cli/main.js.
import { main } from "../dist/cli/main.js";

await main(process.argv);
