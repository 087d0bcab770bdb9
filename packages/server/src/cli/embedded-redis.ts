/**
 * `--store embedded`: a temporary Redis for measurements. Starts `redis-server` on a free loopback port, without persistence, and stops it
 * with the command.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { SluiceError } from "sluice";

const EMBEDDED = "embedded";
/** Generous, for a machine under load. */
const START_MS = 30_000;

/** Calls `use` with the store's URL; for `embedded`, with one that lives as long as the call. */
export async function withStore<S extends string | undefined, T>(
  store: S,
  use: (url: string | S) => Promise<T>,
): Promise<T> {
  if (store !== EMBEDDED) return use(store);
  const port = await freePort();
  const options = { port: String(port), bind: "127.0.0.1", save: "", appendonly: "no", dir: tmpdir() };
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn("redis-server", flags, { stdio: ["ignore", "pipe", "ignore"] });
  const end = (): boolean => child.kill();
  // A signal kills the process without an "exit" event, which would orphan Redis.
  const endBySignal = (signal: NodeJS.Signals): void => {
    end();
    process.kill(process.pid, signal);
  };
  process.once("exit", end).once("SIGINT", endBySignal).once("SIGTERM", endBySignal);
  try {
    await ready(child);
    return await use(`redis://127.0.0.1:${port}`);
  } finally {
    process.off("exit", end).off("SIGINT", endBySignal).off("SIGTERM", endBySignal);
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      end();
      await ended;
    }
  }
}

function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    const fail = (why: string): void => reject(new SluiceError("invalid-setting", `store: ${why}`));
    const timer = setTimeout(() => fail(`redis-server did not start within ${START_MS / 1000} s`), START_MS);
    const settle = (done: () => void): void => {
      clearTimeout(timer);
      done();
    };
    child.once("error", () =>
      settle(() => fail('"embedded" needs redis-server on the PATH; install it, or name a Redis: redis://host:6379')),
    );
    child.once("exit", () => settle(() => fail(`redis-server ended at its start: ${said.trim().slice(-300)}`)));
    child.stdout!.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4_096);
      if (said.includes("Ready to accept connections")) settle(resolve);
    });
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
