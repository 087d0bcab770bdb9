#!/usr/bin/env node
// The `sluice` command: the program itself is bundle/main.js.
import { main } from "../bundle/main.js";

await main(process.argv);
