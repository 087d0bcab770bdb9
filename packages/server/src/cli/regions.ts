/** `sluice regions`: the regions that share the global store, as a table. Needs an admin token. */
import type { Command } from "commander";
import type { RegionsView } from "../monitoring/views/regions.js";
import { printJson, printLine, printTable, spellMs } from "./print.js";
import { adminCommand, type ClientOptions, get, withAdminToken } from "./service-client.js";

export function regionsCommand(): Command {
  return adminCommand("regions")
    .description("the regions that share the global store: traffic, units held, round trip, cut off or not")
    .action(async (options: ClientOptions & { json: boolean }) => {
      const view = (await get("/admin/v1/regions", withAdminToken(options))) as RegionsView;
      if (options.json) printJson(view);
      else printRegions(view);
    });
}

const HEADINGS = ["region", "state", "for", "requests/s", "refused/s", "waited/s", "units", "round trip", "instances"];

function printRegions({ atMs, scope, own, regions }: RegionsView): void {
  if (own === undefined) {
    printLine("this service has no global store");
    return;
  }
  if (scope !== "all") printLine("the global store does not answer: only this region is known");
  const rows = regions.map((region) => [
    region.region,
    region.state,
    region.sinceMs === undefined ? "" : spellMs(Math.max(0, atMs - region.sinceMs)),
    String(region.requestsPerSecond),
    String(region.refusedPerSecond),
    String(region.waitedPerSecond),
    String(region.units),
    region.roundTripMs === undefined ? "" : spellMs(region.roundTripMs),
    region.cutOffInstances === 0 ? `${region.instances}` : `${region.instances} (${region.cutOffInstances} cut off)`,
  ]);
  printTable(HEADINGS, rows);
}
