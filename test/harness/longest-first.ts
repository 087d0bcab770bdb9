/**
 * The order of test files: those that need a process of their own, then those that share one, then the unit tests; in each, the longest
 * first. A long file that starts last would keep one worker busy while the others stand idle; a fresh clone has no times of an earlier run,
 * and vitest would go by the size of the files.
 */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** A worker is used again as long as the next file is of its project: so projects do not take turns. */
const PROJECTS = ["apart", "system", "unit"];

/** Seconds in a run of the whole on two cores, of files that take 20 or more. Only their order matters. */
export const SECONDS: Readonly<Record<string, number>> = {
  "test/service/schemathesis/schemathesis.test.ts": 103,
  "test/twins/model-and-lua.test.ts": 92,
  "test/packages/tarballs.test.ts": 77,
  "test/dashboard/pages.test.ts": 72,
  "test/twins/reservations.test.ts": 70,
  "test/service/behind-envoy.test.ts": 72,
  "test/faults/outage.test.ts": 62,
  "test/faults/cluster.test.ts": 61,
  "test/service/languages.test.ts": 56,
  "test/dashboard/hostile-data.test.ts": 55,
  "test/service/lame-duck.test.ts": 49,
  "test/service/same-verdict.test.ts": 47,
  "test/twins/edited-rules.test.ts": 46,
  "test/world/protocol/protocol.test.ts": 44,
  "test/dashboard/drafts.test.ts": 42,
  "test/service/hostile-input.test.ts": 41,
  "test/dashboard/journey.test.ts": 38,
  "test/world/fleet-load.test.ts": 36,
  "test/conformance/cluster.test.ts": 35,
  "test/faults/wire.test.ts": 35,
  "test/world/region-load.test.ts": 35,
  "test/faults/soak.test.ts": 33,
  "test/monitoring/stats.test.ts": 32,
  "test/dashboard/lists.test.ts": 31,
  "test/service/rolling-restart.test.ts": 31,
  "test/service/envoy-quota.test.ts": 29,
  "test/twins/ids.test.ts": 28,
  "test/dashboard/people.test.ts": 27,
  "test/dashboard/try-on-traffic.test.ts": 27,
  "test/dashboard/trouble.test.ts": 25,
  "test/dashboard/incident.test.ts": 24,
  "test/dashboard/wall.test.ts": 24,
  "test/faults/ids.test.ts": 24,
  "test/twins/long-rings.test.ts": 23,
  "test/conformance/redis.test.ts": 22,
  "test/dashboard/endurance.test.ts": 22,
  "test/dashboard/frames.test.ts": 22,
  "test/dashboard/two-tabs.test.ts": 22,
  "test/monitoring/store-view.test.ts": 22,
  "test/service/gateway-attacks.test.ts": 22,
  "test/service/socket-activation.test.ts": 22,
  "test/world/world.test.ts": 22,
  "test/dashboard/key-page.test.ts": 21,
  "test/monitoring/outage.test.ts": 21,
  "test/service/successor.test.ts": 21,
  "test/configuration/scale.test.ts": 20,
  "test/faults/instances.test.ts": 20,
  "test/faults/regions.test.ts": 20,
  "test/faults/sentinel.test.ts": 20,
  "test/service/command-line.test.ts": 20,
  "test/service/first-start.test.ts": 20,
  "packages/sluice/src/limiter/swap-rules.test.ts": 13,
  "packages/server/src/analysis/log/byte-readers.test.ts": 9,
};

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bySize = await super.sort(files);
    return bySize.sort((a, b) => placeOf(a) - placeOf(b) || secondsOf(b) - secondsOf(a));
  }
}

function placeOf({ project }: TestSpecification): number {
  return PROJECTS.indexOf(project.name);
}

function secondsOf({ moduleId }: TestSpecification): number {
  return SECONDS[relative(root, moduleId)] ?? 0;
}
