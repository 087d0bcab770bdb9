/** What a start reads: a restart in place is an outage for as long as the start takes, and reading code is most of it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { leashProcess, makeTempFolder, removeTempFolder } from "../harness/leash.js";

const bin = fileURLToPath(new URL("../../packages/server/bin/sluice.js", import.meta.url));
const report = new URL("report-modules.mjs", import.meta.url).href;

/** The files that are loaded as code until the service answers. */
async function loadedBy(...flags: string[]): Promise<{ files: [string, number][]; atListen: [string, number][] }> {
  const folder = makeTempFolder("start");
  const args = ["--port", "0", "--grpc-port", "0", "--data-folder", folder, "--drain-delay", "0", ...flags];
  const child = spawn(process.execPath, ["--import", report, bin, "serve", ...args], {
    cwd: folder,
    stdio: ["ignore", "pipe", "ignore", "ipc"],
  });
  leashProcess(child);
  let output = "";
  for await (const chunk of child.stdout!) {
    output += chunk;
    if (output.includes("/v1/check -H")) break;
  }
  const service = /HTTP +(\S+)/.exec(output)![1]!;
  const check = { method: "POST", headers: { "content-type": "application/json" }, body: '{"attributes":{}}' };
  expect((await fetch(`${service}/v1/check`, check)).status).toBe(200);
  const modules = async (which: "modules" | "modules at listen" = "modules"): Promise<[string, number][]> => {
    child.send(which);
    return (await once(child, "message"))[0] as [string, number][];
  };
  const atListen = await modules("modules at listen");
  const files = await modules();
  expect((await fetch(`${service}/openapi.json`)).status).toBe(200);
  expect((await modules()).some(([file]) => file.includes("swagger"))).toBe(true);
  child.kill("SIGINT");
  await once(child, "exit");
  removeTempFolder(folder);
  return { files, atListen };
}

test("a start reads a few files of code, and none that only some requests or settings need", async () => {
  const { files } = await loadedBy();
  const code = files.filter(([file]) => !file.endsWith(".node"));
  // 40 files with one of them native, and 2.8 MB, since the client of Redis is read only where there is one; 1770 and 4.3 before there was a bundle.
  expect(code.length).toBeLessThanOrEqual(40);
  expect(code.reduce((sum, [, bytes]) => sum + bytes, 0)).toBeLessThan(2_900_000);
  const names = code.map(([file]) => file).join("\n");
  expect(names).not.toMatch(
    /swagger|ajv|reflection|proto-loader|[/]pg[/]|opentelemetry|otlp|xds|documentation|on-redis|redis-nodes|warm-cache/,
  );
});

test("the ports open before anything but the settings is read: meanwhile an Envoy that fails closed answers 500", async () => {
  const { atListen } = await loadedBy();
  expect(atListen.map(([file]) => file.replace(/^.*\//, "").replace(/-[\w-]{8}\./, "."))).toEqual([
    "sluice.js",
    "quick-serve.js",
    "door.js",
  ]);
  expect(atListen.reduce((sum, [, bytes]) => sum + bytes, 0)).toBeLessThan(55_000);
});
