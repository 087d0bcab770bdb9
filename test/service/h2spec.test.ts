/**
 * h2spec, the conformance suite for HTTP/2 servers, against the gRPC port. A Go program: it runs where it is installed
 * (`go install github.com/summerwind/h2spec/cmd/h2spec@latest`), or `H2SPEC_BIN` names it. Elsewhere the other tests of the transport stand alone.
 */
import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startTransport } from "./http2-peer.js";

const folders = [...(process.env.PATH ?? "").split(delimiter), join(homedir(), "go", "bin")];
const program = [process.env.H2SPEC_BIN, ...folders.map((folder) => join(folder, "h2spec"))].find(isProgram);

function isProgram(file: string | undefined): file is string {
  if (file === undefined) return false;
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

if (program === undefined) console.log("h2spec is not installed here: its 145 cases are not run");

test("h2spec, where it is installed, finds no failure", async () => {
  if (program === undefined) return;
  const service = await startTransport();
  try {
    const args = ["-h", "127.0.0.1", "-p", String(service.port), "-o", "10"];
    const { stdout } = await promisify(execFile)(program, args).catch((error: { stdout: string }) => error);
    expect(stdout.trim().split("\n").at(-1)).toBe("145 tests, 145 passed, 0 skipped, 0 failed");
  } finally {
    await service.stop();
  }
});
