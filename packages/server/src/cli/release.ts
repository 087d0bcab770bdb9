/** `sluice release LEASE`: releases a lease from a check. */
import type { Command } from "commander";
import { printJson, printLine } from "./print.js";
import { type ClientOptions, clientCommand, post } from "./service-client.js";

export function releaseCommand(): Command {
  return clientCommand("release")
    .description("free a lease that a check gave; twice is harmless")
    .argument("<lease>", "the lease's id")
    .action(async (lease: string, options: ClientOptions & { json: boolean }) => {
      const answer = await post("/v1/release", { lease }, options);
      if (options.json) printJson(answer);
      else printLine(answer.released === true ? "released" : "was not held any more");
    });
}
