/** Sockets that a supervisor holds (systemd's socket activation): the port stays open between two processes, so a restart refuses nobody. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { resolveSettings } from "../../packages/server/src/settings/settings.js";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { activated, HeldSockets } from "../harness/held-sockets.js";
import { leashProcess, makeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { LoadConnections } from "./load-connections.js";
import { startApp, startEnvoy } from "./real-envoy.js";
import { postJson, startServiceProcess } from "./running-service.js";

const bin = fileURLToPath(new URL("../../packages/server/bin/sluice.js", import.meta.url));
const limits = "domain: d\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 1000000 } }]";
const byUser = [{ actions: [{ request_headers: { header_name: "x-user", descriptor_key: "user" } }] }];
const check = { attributes: { user: "x" } };

/** Runs `sluice serve` to its end, which a mistake brings. */
async function failing(sockets: HeldSockets | undefined, env: Record<string, string>, ...flags: string[]) {
  const folder = makeTempFolder("activation");
  const command = [process.execPath, bin, "serve", "--data-folder", folder, ...flags];
  const { command: program, args } = activated(command, env);
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe", ...(sockets?.descriptors ?? [])] });
  leashProcess(child);
  let output = "";
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (chunk) => (output += chunk));
  const [status] = (await once(child, "close")) as [number];
  return { status, output };
}

test("requests that come between two processes are answered by the second, on every port", async () => {
  using held = new HeldSockets(3);
  const [grpc, http, metrics] = held.ports;
  const settings = { port: String(http), "grpc-port": String(grpc), "metrics-address": `127.0.0.1:${metrics}` };
  const start = () => startServiceProcess({ settings, sockets: { held } });
  const first = await start();
  expect([first.grpc, first.http]).toEqual([`127.0.0.1:${grpc}`, `http://127.0.0.1:${http}`]);
  expect((await postJson(`${first.http}/v1/check`, check)).status).toBe(200);
  expect(await first.end()).toBe(0);
  // Nobody serves, and nobody is refused.
  const waiting = [postJson(`${first.http}/v1/check`, check), fetch(`http://127.0.0.1:${metrics}/metrics`)];
  const second = await start();
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
  expect(await second.end()).toBe(0);
});

test("names decide over numbers; a port without a socket is opened as ever", async () => {
  using held = new HeldSockets(1);
  const service = await startServiceProcess({ sockets: { held, names: ["grpc"] } });
  expect(service.grpc).toBe(`127.0.0.1:${held.ports[0]}`);
  expect((await fetch(`${service.http}/healthz`)).status).toBe(200);
  expect(await service.end()).toBe(0);
});

test("clients of a start that takes long are not reset, as they are at a port of the process's own", async () => {
  const listener = new URL("../../packages/server/dist/http/waiting-listener.js", import.meta.url).href;
  const script = `
    const { WaitingListener } = await import(${JSON.stringify(listener)});
    const listener = new WaitingListener({ waitAtMostMs: 1 });
    if (process.argv[1] === "inherited") await listener.inherit(3);
    else console.log((await listener.listen({ host: "127.0.0.1", port: 0, portSetting: "port" })).number);
    setTimeout(() => console.log("late"), 50);
    process.stdin.once("data", () => listener.serve((socket) => socket.end("served")));`;
  const answer = async (kind: "inherited" | "own", held: HeldSockets): Promise<string> => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", script, kind], {
      stdio: ["pipe", "pipe", "inherit", ...held.descriptors],
    });
    leashProcess(child);
    let output = "";
    child.stdout!.on("data", (chunk) => (output += chunk));
    await expect.poll(() => output, { timeout: 60_000 }).toContain(kind === "own" ? "\n" : "late");
    const client = connect(kind === "own" ? Number.parseInt(output, 10) : held.ports[0]!, "127.0.0.1");
    let received = "";
    client.on("data", (chunk) => (received += chunk));
    client.on("error", (error) => (received += (error as NodeJS.ErrnoException).code));
    const closed = new Promise((resolve) => client.once("close", resolve));
    await Promise.race([new Promise((resolve) => client.once("connect", resolve)), closed]);
    await expect.poll(() => output, { timeout: 60_000 }).toContain("late");
    child.stdin!.write("serve\n");
    await closed;
    child.kill("SIGKILL");
    return received;
  };
  using held = new HeldSockets(1);
  expect(await answer("inherited", held)).toBe("served");
  expect(await answer("own", held)).toBe("ECONNRESET");
});

describe("a mistake ends the start with status 2, and is named:", () => {
  test("a descriptor that is no socket", async () => {
    const { status, output } = await failing(undefined, { LISTEN_FDS: "1" });
    expect(output).toMatch(/LISTEN_FDS: descriptor 3: expected a TCP socket that listens, or can, got \w+/);
    expect(status).toBe(2);
  });

  test("a socket that fits no port", async () => {
    using held = new HeldSockets(1);
    const { status, output } = await failing(held, { LISTEN_FDS: "1", LISTEN_FDNAMES: "sluice.socket" });
    expect(output).toContain(
      `LISTEN_FDS: descriptor 3 ("sluice.socket"): expected the name or the port of one of grpc (--grpc-port 8081), http (--port 8080), got port ${held.ports[0]}`,
    );
    expect(status).toBe(2);
  });

  test("two sockets for one port", async () => {
    using held = new HeldSockets(2);
    const { status, output } = await failing(held, { LISTEN_FDS: "2", LISTEN_FDNAMES: "grpc:grpc" });
    expect(output).toContain('LISTEN_FDS: descriptor 4 ("grpc"): expected one socket for grpc, got a second one');
    expect(status).toBe(2);
  });

  test("a socket for everybody where the settings say loopback", async () => {
    using held = new HeldSockets(1, "0.0.0.0");
    const { status, output } = await failing(held, { LISTEN_FDS: "1", LISTEN_FDNAMES: "http" });
    expect(output).toContain("expected a socket on 127.0.0.1, as the settings have it, got one on 0.0.0.0");
    expect(status).toBe(2);
  });

  test("a number of sockets that is none", async () => {
    const { status, output } = await failing(undefined, { LISTEN_FDS: "all" });
    expect(output).toContain('LISTEN_FDS: expected a whole number from 0 to 16 (socket activation), got "all"');
    expect(status).toBe(2);
  });
});

test("sockets for another process are not touched; where their port is taken, the reason is told", async () => {
  using held = new HeldSockets(1);
  const service = await startServiceProcess({
    settings: { "grpc-port": String(held.ports[0]) },
    sockets: { held, names: ["grpc"] },
  });
  const env = { LISTEN_PID: "1", LISTEN_FDS: "1" };
  const { status, output } = await failing(undefined, env, "--port", "0", "--grpc-port", String(held.ports[0]));
  expect(output).toContain(`port ${held.ports[0]} on 127.0.0.1 is taken`);
  expect(output).toContain("LISTEN_PID has sockets for process 1; this is ");
  expect(status).toBe(1);
  await service.end();
});

test.skipIf(whyMissing("socketActivate"))("systemd's own program hands its sockets over", async () => {
  const [grpc, http] = [await freePort(), await freePort()];
  const folder = makeTempFolder("activation");
  const child = spawn(
    components.socketActivate.find()!,
    [
      "-l",
      `127.0.0.1:${grpc}`,
      "-l",
      `127.0.0.1:${http}`,
      "--fdname",
      "grpc:http",
      process.execPath,
      bin,
      "serve",
    ].concat(["--data-folder", folder, "--drain-delay", "0"]),
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  leashProcess(child);
  // It starts the program with the first connection.
  let output = "";
  child.stderr!.on("data", (chunk) => (output += chunk));
  await expect.poll(() => output, { timeout: 30_000 }).toContain(`:${http}`);
  expect((await postJson(`http://127.0.0.1:${http}/v1/check`, check)).status).toBe(200);
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

test("the units in deploy/systemd listen where the service's settings are, and start it with flags that it knows", () => {
  const unit = (name: string) =>
    readFileSync(fileURLToPath(new URL(`../../deploy/systemd/${name}`, import.meta.url)), "utf8");
  const listens = [...unit("sluice.socket").matchAll(/^ListenStream=(.*)$/gm)].map(([, address]) => address);
  const [, command] = /^ExecStart=.* serve (.*)$/m.exec(unit("sluice.service"))!;
  const given = [...command!.matchAll(/--([a-z-]+) (\S+)/g)];
  const settings = resolveSettings({
    flags: Object.fromEntries(given.map(([, name, value]) => [name, value])),
    env: {},
  });
  expect(listens).toEqual([`${settings.host}:${settings.port}`, `${settings.host}:${settings["grpc-port"]}`]);
  expect(given.map(([, name]) => name)).toEqual(["store", "drain-delay"]);
});

describe.skipIf(whyMissing("redis"))("a restart in place", () => {
  test.skipIf(whyMissing("envoy")).each(["1", "2"])(
    "behind an Envoy that fails closed, with 64 connections: no request is refused; %s process(es)",
    async (workers) => {
      const app = await startApp((_request, response) => response.end("ok"));
      await using redis = await startRedis();
      using held = new HeldSockets(2);
      const start = () =>
        startServiceProcess({
          files: { "limits/d.yaml": limits },
          settings: { "envoy-config": "limits", store: redis.url, "store-deadline": "10s", workers },
          sockets: { held, names: ["grpc", "http"] },
        });
      let service = await start();
      const envoy = await startEnvoy({
        limiter: service.grpc,
        app: app.at,
        domain: "d",
        rateLimits: byUser,
        failureModeDeny: [true],
        timeout: "60s",
      });
      const counts = new Map<number, number>();
      const connections = new LoadConnections({ url: envoy.url, count: 64 });
      let running = true;
      const load = Array.from({ length: 64 }, async () => {
        while (running) {
          const { status } = await connections.send("GET", "/", { headers: "x-user: all\r\n" });
          counts.set(status, (counts.get(status) ?? 0) + 1);
        }
      });
      const more = async (): Promise<void> => {
        const seen = () => [...counts.values()].reduce((sum, count) => sum + count, 0);
        await expect.poll(seen, { timeout: 60_000 }).toBeGreaterThan(seen() + 500);
      };
      await more();
      expect(await service.end()).toBe(0);
      service = await start();
      await more();
      running = false;
      await Promise.all(load);
      connections.close();
      expect([...counts.keys()], JSON.stringify([...counts])).toEqual([200]);
      await envoy.stop();
      expect(await service.end()).toBe(0);
      app.close();
    },
  );
});
