/**
 * Every test file starts in surroundings of its own, whatever the developer's shell, checkout or running service has:
 * no setting of Sluice or of the service whose environment it understands, no colour switch, no credentials of databases in the environment, and an empty working directory
 * (a checkout where `npm start` ran has `.sluice/admin-token`; one with a `sluice.yaml` has settings).
 * Files share a process, one after the other: what a file set, started or made ends with it.
 */
import { afterAll, vi } from "vitest";
import { ignored } from "../../packages/server/src/settings/ignored-reference-names.js";
import { combined, renamed } from "../../packages/server/src/settings/reference-environment.js";
import { leaveFolder, restoreEnvironment } from "./first-environment.js";
import { forgetPorts } from "./free-port.js";
import { makeTempFolder, takeDown } from "./leash.js";
import { calmDown } from "./server-process.js";

/** What tests themselves are told: `SLUICE_TEST_SEED=7 npm test`. */
const FOR_TESTS = /^SLUICE_(TEST_|DETECTION_|SCREENSHOTS$|PEER_)/;
const FOREIGN =
  /^(SLUICE_|OTEL_|PG|LISTEN_(FDS|FDNAMES|PID)$|FORCE_COLOR$|NO_COLOR$|CLICOLOR|NODE_OPTIONS$|NODE_EXTRA_CA_CERTS$|HTTPS?_PROXY$)/i;
/** Those of envoyproxy/ratelimit, which the service reads too: RUNTIME_ROOT, REDIS_URL, PORT, LOG_LEVEL. */
const OF_REFERENCE = new Set([
  ...Object.keys(renamed),
  ...Object.keys(combined),
  ...ignored.flatMap(({ names }) => names),
]);

/** The names of variables that would change what a test sees. */
export function foreignVariables(names: readonly string[]): string[] {
  return names.filter((name) => (FOREIGN.test(name) && !FOR_TESTS.test(name)) || OF_REFERENCE.has(name));
}

restoreEnvironment();
for (const name of foreignVariables(Object.keys(process.env))) delete process.env[name];
process.chdir(makeTempFolder("cwd"));
forgetPorts();

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  leaveFolder();
  takeDown();
  calmDown();
});
