/**
 * Runs one of the benchmarks that count allocated bytes, in a process whose young generation is so large that nothing is collected meanwhile.
 * Bytes are what a test may judge: they do not depend on the machine or its load, as times do.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const bench = new URL("../../bench/", import.meta.url);

export async function countBytes(file: string): Promise<Record<string, number>> {
  const flags = ["--expose-gc", "--min-semi-space-size=256", "--max-semi-space-size=256"];
  const args = [...flags, fileURLToPath(new URL(file, bench))];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}
