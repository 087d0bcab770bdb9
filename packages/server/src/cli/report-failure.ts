/** Prints a command's failure to standard error. Out: its exit status. */
import { SluiceError } from "sluice";
import { printableLines } from "../printable.js";
import { CommandFailure, exitStatus } from "./command-failure.js";

export function reportFailure(error: unknown): number {
  if (error instanceof CommandFailure) {
    if (error.message !== "") process.stderr.write(`${error.message}\n`);
    return error.status;
  }
  if (error instanceof SluiceError && error.code === "invalid-setting") {
    process.stderr.write(`${printableLines(error.message)}\n`);
    return exitStatus.misuse;
  }
  process.stderr.write(`${printableLines(describe(error))}\n`);
  return exitStatus.failed;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
