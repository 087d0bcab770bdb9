/**
 * A real PostgreSQL on loopback, for tests: own port, own folder, no password. It can be stopped, killed, frozen and restarted
 * on its data. PostgreSQL refuses to run as root, so as root it runs as nobody, in a folder that nobody owns.
 */
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync } from "node:fs";
import { dirname, join } from "node:path";
import { components } from "../../scripts/system-components.mjs";
import { freePort } from "./free-port.js";
import { leashProcess, makeTempFolder, removeTempFolder } from "./leash.js";

export interface PostgresServer extends AsyncDisposable {
  /** Of the database `postgres`. */
  readonly url: string;
  readonly port: number;
  /** Makes an empty database; resolves with its URL. */
  createDatabase(name: string): string;
  /** Runs SQL by psql, in a database of this server. */
  sql(url: string, statement: string): string;
  /** Ends the server and removes its folder. */
  stop(): Promise<void>;
  /** What clients see of a crash; the data stays. */
  kill(): Promise<void>;
  /** Starts again on the same port and data; ends the running one first. */
  restart(): Promise<void>;
}

const NOBODY = 65_534;
const READY = /database system is ready to accept connections/;
const START_MS = 20_000;

export async function startPostgres(): Promise<PostgresServer> {
  const folder = makeTempFolder("postgres");
  const data = join(folder, "data");
  const isRoot = process.getuid?.() === 0;
  const identity = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  chmodSync(folder, 0o700);
  const program = (name: string) => join(dirname(postgresBinary()), name);
  execFileSync(program("initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"], {
    ...identity,
    cwd: folder,
    stdio: "ignore",
  });
  const port = await freePort();

  const launch = async () => {
    const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: folder, max_connections: "200" };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(postgresBinary(), ["-D", data, "-p", String(port), ...flags], {
      ...identity,
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
    });
    leashProcess(child);
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    await new Promise<void>((resolve, reject) => {
      let log = "";
      const fail = () => reject(new Error(`postgres did not start\n${log}`));
      const timer = setTimeout(fail, START_MS);
      const read = (chunk: Buffer) => {
        log += chunk.toString();
        if (!READY.test(log)) return;
        clearTimeout(timer);
        resolve();
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.once("close", fail);
    });
    return {
      // SIGINT is its "fast" end: clients are sent away. SIGQUIT ends all of its processes at once, as a crash would; SIGKILL
      // of the first would leave the others behind.
      end: async (signal: "SIGINT" | "SIGQUIT") => {
        child.kill(signal);
        await exited;
      },
    };
  };

  let server = await launch();
  const urlOf = (name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`;
  const psql = (url: string, statement: string) =>
    execFileSync(program("psql"), ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, url], {
      encoding: "utf8",
      timeout: 10_000,
    }).trim();

  const postgres: PostgresServer = {
    url: urlOf("postgres"),
    port,
    createDatabase(name) {
      psql(urlOf("postgres"), `CREATE DATABASE ${name}`);
      return urlOf(name);
    },
    sql: psql,
    async stop() {
      await server.end("SIGINT");
      removeTempFolder(folder);
    },
    kill: () => server.end("SIGQUIT"),
    async restart() {
      await server.end("SIGINT");
      server = await launch();
    },
    [Symbol.asyncDispose]: () => postgres.stop(),
  };
  return postgres;
}

function postgresBinary(): string {
  const file = components.postgresql.find();
  if (file === undefined) throw new Error("postgres was not found: install postgresql");
  return file;
}
