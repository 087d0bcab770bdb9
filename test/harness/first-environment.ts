/** The environment as this process had it before its first test file: what every further file of the process starts with. */
import { tmpdir } from "node:os";

const first: Readonly<Record<string, string | undefined>> = { ...process.env };
/** Vitest names the file's worker by these. */
const OF_VITEST = /^VITEST/;

export function restoreEnvironment(): void {
  for (const name of Object.keys(process.env)) {
    if (!(name in first) && !OF_VITEST.test(name)) delete process.env[name];
  }
  for (const [name, value] of Object.entries(first)) {
    if (!OF_VITEST.test(name)) process.env[name] = value;
  }
}

/** A folder that no test removes. */
export function leaveFolder(): void {
  process.chdir(tmpdir());
}
