/**
 * Runs the shell blocks of a page as a reader would: in order, in one folder, against a service that the page starts or that is given.
 * In: blocks, in the page's order. Out: each block with what it printed. A command that fails ends its block, and the page.
 * `npx sluice` and `node examples/…` are those of this checkout; 127.0.0.1:8080 is the port of the page's own service.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../harness/free-port.js";
import { leashProcess, makeTempFolder, removeTempFolder } from "../harness/leash.js";
import { type Block, placeOf, root } from "./read-blocks.js";

export interface RanBlock {
  readonly block: Block;
  readonly printed: string;
  /** The `text` block behind it, if there is one. */
  readonly expected: string | undefined;
}

const READY_WITHIN_MS = 60_000;

export async function runPage(blocks: readonly Block[], isRun: (block: Block) => boolean): Promise<RanBlock[]> {
  const folder = makeTempFolder("guide-page");
  const [port, grpcPort] = [await freePort(), await freePort()];
  const env = { ...process.env, ...surroundings(folder, { port, grpcPort }) };
  const stops: (() => Promise<void>)[] = [];
  const ran: RanBlock[] = [];
  const wanted = blocks.filter(isRun);
  try {
    const needsService = wanted.some(({ code }) => code.includes("127.0.0.1:8080"));
    if (needsService && !wanted.some(({ mark }) => mark === "background")) {
      stops.push(await startInBackground("\nsluice serve", { folder, env, port }));
    }
    for (const [at, block] of blocks.entries()) {
      if (!isRun(block)) continue;
      const script = `set -euo pipefail\n${block.code.replaceAll("127.0.0.1:8080", `127.0.0.1:${port}`)}`;
      if (block.mark === "background") {
        stops.push(await startInBackground(script, { folder, env, port }));
        continue;
      }
      const next = blocks[at + 1];
      const printed = await printedBy(script, { folder, env, place: placeOf(block) });
      ran.push({ block, printed, expected: next?.language === "text" ? next.code : undefined });
    }
    return ran;
  } finally {
    await Promise.all(stops.map((stop) => stop()));
    removeTempFolder(folder);
  }
}

interface Place {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
}

async function printedBy(script: string, { folder, env, place }: Place & { place: string }): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)("bash", ["-c", script], { cwd: folder, env, timeout: 100_000 });
    return stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${place} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

async function startInBackground(
  script: string,
  { folder, env, port }: Place & { port: number },
): Promise<() => Promise<void>> {
  // `exec`, so that the process that is stopped is the service itself.
  const child = spawn("bash", ["-c", script.replace(/\n(?=npx |sluice |node )/, "\nexec ")], {
    cwd: folder,
    env,
    stdio: "ignore",
  });
  leashProcess(child);
  const deadlineMs = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const isReady = await fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) {
      return async () => {
        // Not SIGTERM: a service that drains goes on writing to the folder that is removed next.
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      };
    }
    if (child.exitCode !== null || performance.now() > deadlineMs)
      throw new Error(`the service of the page did not start`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A folder with the commands that the pages use, first on the path; `examples` and the packages as in a checkout. */
function surroundings(folder: string, { port, grpcPort }: { port: number; grpcPort: number }): Record<string, string> {
  const bin = join(folder, ".bin");
  mkdirSync(bin);
  const command = (name: string, text: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  const program = join(root, "packages/server/bin");
  command("sluice", `exec "${process.execPath}" "${program}/sluice.js" "$@"`);
  command("sluice-server", `exec "${process.execPath}" "${program}/sluice-server.js" "$@"`);
  command("npx", 'exec "$@"');
  symlinkSync(join(root, "examples"), join(folder, "examples"));
  return {
    PATH: `${bin}:${process.env.PATH}`,
    NO_COLOR: "1",
    SLUICE_PORT: String(port),
    SLUICE_GRPC_PORT: String(grpcPort),
    SLUICE_SERVER: `http://127.0.0.1:${port}`,
    SLUICE_LOG_LEVEL: "error",
  };
}

/** Whether a text is what a page shows: `…` stands for anything within a line, spaces count as one. */
export function isShown(printed: string, shown: string): boolean {
  const plain = (text: string): string =>
    text
      .trimEnd()
      .replace(/[ \t]+/g, " ")
      .replace(/ +$/gm, "");
  const pattern = plain(shown)
    .split("…")
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .join("[^\\n]*");
  return new RegExp(`^${pattern}$`).test(plain(printed));
}
