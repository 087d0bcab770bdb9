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
  "test/twins/model-and-lua.test.ts": 123,
  "test/service/schemathesis/schemathesis.test.ts": 96,
  "test/dashboard/pages.test.ts": 74,
  "test/faults/cluster.test.ts": 66,
  "test/conformance/cluster.test.ts": 65,
  "test/faults/outage.test.ts": 65,
  "test/service/behind-envoy.test.ts": 65,
  "test/dashboard/trouble.test.ts": 64,
  "test/dashboard/endurance.test.ts": 57,
  "test/conformance/redis.test.ts": 54,
  "test/dashboard/drafts.test.ts": 46,
  "test/service/gateway-attacks.test.ts": 43,
  "test/service/lame-duck.test.ts": 42,
  "test/dashboard/incident.test.ts": 42,
  "test/service/hostile-input.test.ts": 41,
  "test/dashboard/journey.test.ts": 39,
  "test/faults/sentinel.test.ts": 36,
  "test/monitoring/stats.test.ts": 33,
  "test/faults/soak.test.ts": 33,
  "test/dashboard/wall.test.ts": 32,
  "test/world/protocol/protocol.test.ts": 32,
  "test/faults/half-open.test.ts": 30,
  "test/dashboard/hostile-data.test.ts": 29,
  "test/service/rolling-restart.test.ts": 28,
  "test/packages/tarballs.test.ts": 28,
  "test/twins/ids.test.ts": 28,
  "test/world/world.test.ts": 28,
  "test/faults/wire.test.ts": 27,
  "test/dashboard/try-on-traffic.test.ts": 27,
  "test/service/same-verdict.test.ts": 27,
  "test/dashboard/people.test.ts": 26,
  "test/faults/access.test.ts": 25,
  "test/service/socket-activation.test.ts": 25,
  "test/dashboard/key-page.test.ts": 24,
  "test/monitoring/store-alerts.test.ts": 24,
  "test/monitoring/store-view.test.ts": 24,
  "test/service/languages.test.ts": 23,
  "test/world/region-load.test.ts": 23,
  "test/monitoring/detection.test.ts": 23,
  "test/dashboard/two-tabs.test.ts": 23,
  "test/guide/browser.test.ts": 23,
  "test/service/envoy-quota.test.ts": 22,
  "test/dashboard/load.test.ts": 22,
  "packages/sluice/src/limiter/swap-rules.test.ts": 22,
  "test/service/shutdown-resets.test.ts": 22,
  "test/dashboard/lists.test.ts": 22,
  "test/configuration/scale.test.ts": 21,
  "test/monitoring/outage.test.ts": 21,
  "test/packages/release.test.ts": 20,
  "test/service/command-line.test.ts": 20,
  "test/faults/regions.test.ts": 20,
  "packages/dashboard/src/range/zoned-time.test.ts": 11,
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
