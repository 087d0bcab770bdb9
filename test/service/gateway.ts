/** The gateways of examples/, started with the very files that the examples hold, on ports of the test's own. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { components } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { type ServerProcess, startServerProcess } from "../harness/server-process.js";

export const examples = fileURLToPath(new URL("../../examples/", import.meta.url));

export const gateways = ["nginx", "caddy", "traefik", "haproxy"] as const;
export type Gateway = (typeof gateways)[number];

interface Start {
  readonly args: (folder: string, port: number) => string[];
  readonly readyLine: RegExp;
}

const starts: Readonly<Record<Gateway, Start>> = {
  nginx: {
    args: (folder) => ["-p", folder, "-c", join(folder, "nginx.conf"), "-e", "stderr"],
    readyLine: /start worker process/,
  },
  caddy: {
    args: (folder) => ["run", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"],
    readyLine: /serving initial configuration/,
  },
  traefik: {
    args: (folder, port) => [
      `--providers.file.filename=${join(folder, "dynamic.yaml")}`,
      `--entrypoints.web.address=127.0.0.1:${port}`,
      "--log.level=DEBUG",
    ],
    readyLine: /Starting TCP Server/,
  },
  haproxy: {
    args: (folder) => ["-C", folder, "-f", join(folder, "haproxy.cfg"), "-db", "-V"],
    readyLine: /Using epoll|Using \w+\(\) as the polling mechanism/,
  },
};

export async function startGateway(
  gateway: Gateway,
  ports: { port: number; app: number; sluice: number },
  /** How long it waits for Sluice, instead of the examples' second: on a machine that runs other tests an answer may take longer. */
  patience: "20s" | "200ms" = "20s",
): Promise<ServerProcess> {
  const folder = makeTempFolder(gateway);
  mkdirSync(join(folder, "tmp"));
  for (const name of readdirSync(join(examples, gateway))) {
    const adapted = readFileSync(join(examples, gateway, name), "utf8")
      .replaceAll("127.0.0.1:8090", `127.0.0.1:${ports.port}`)
      .replaceAll("127.0.0.1:3000", `127.0.0.1:${ports.app}`)
      .replaceAll("127.0.0.1:8080", `127.0.0.1:${ports.sluice}`)
      .replace("error_log stderr warn", "error_log stderr notice")
      .replaceAll("_timeout 1s", `_timeout ${patience}`)
      .replace("TIMEOUT_MS = 1000", `TIMEOUT_MS = ${patience === "20s" ? 20_000 : 200}`);
    writeFileSync(join(folder, name), adapted);
  }
  const { args, readyLine } = starts[gateway];
  const server = await startServerProcess({
    command: components[gateway].find()!,
    args: args(folder, ports.port),
    env: { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    cwd: folder,
    readyLine,
  });
  await untilRouted(`http://127.0.0.1:${ports.port}/`);
  return server;
}

/** HAProxy says that it is ready before it listens; Traefik listens before it has read its routes, and says so in words of its own. */
async function untilRouted(url: string): Promise<void> {
  const isRouted = () =>
    fetch(url).then(
      async (answer) => (await answer.text()) !== "404 page not found\n",
      () => false,
    );
  for (let looks = 0; !(await isRouted()); looks++) {
    if (looks > 1_000) throw new Error(`${url} is not routed to the application`);
    await sleep(50);
  }
}
