/** The folder of --envoy-config: what is read, what ends a start, how changes come in force; and the starter rules beside it. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { connectEnvoy, descriptor } from "./envoy-client.js";
import { runSluice, startServiceProcess, startTestService } from "./running-service.js";

const OK = 1;
const OVER_LIMIT = 2;

const perDay = (domain: string, limit = 1) =>
  `domain: ${domain}\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: ${limit} } }]\n`;

/** How many of `count` requests of a fresh user pass. */
async function admittedOf(envoy: ReturnType<typeof connectEnvoy>, domain: string, count: number): Promise<number> {
  const user = `user-${Math.random()}`;
  let admitted = 0;
  for (let i = 0; i < count; i++) {
    const { overallCode } = await envoy.shouldRateLimit({ domain, descriptors: [descriptor({ user })] });
    if (overallCode === OK) admitted++;
  }
  return admitted;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + 20_000;
  while (!(await holds())) {
    if (Date.now() > endMs) throw new Error("it never came to hold");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("sub-folders and files without a suffix are read; other files are named in the log", async () => {
  const folder = makeTempFolder("envoy");
  mkdirSync(join(folder, "team", "deep"), { recursive: true });
  mkdirSync(join(folder, ".hidden"));
  writeFileSync(join(folder, "plain"), perDay("plain"));
  writeFileSync(join(folder, "team", "deep", "nested.yml"), perDay("nested"));
  writeFileSync(join(folder, "two.yaml"), `${perDay("first")}---\n${perDay("second")}`);
  writeFileSync(join(folder, ".hidden", "draft.yaml"), "not: limits");
  writeFileSync(join(folder, "limits.yaml.bak"), perDay("backup"));
  symlinkSync("nowhere", join(folder, "dangling.yaml"));
  const service = await startServiceProcess({ settings: { "envoy-config": join("..", folder.split("/").at(-1)!) } });
  const envoy = connectEnvoy(service.grpc);
  for (const domain of ["plain", "nested", "first", "second"]) expect(await admittedOf(envoy, domain, 2)).toBe(1);
  expect(await admittedOf(envoy, "backup", 2)).toBe(2);
  expect(service.output()).toMatch(/"dangling\.yaml","limits\.yaml\.bak".*files that are not read/);
  envoy.close();
  await service.end();
});

test("several files may tell of one domain where that is asked for", async () => {
  const files = {
    "a.yaml": perDay("shop"),
    "b.yaml": "domain: shop\ndescriptors: [{ key: b, rate_limit: { unit: day, requests_per_unit: 1 } }]",
  };
  const folder = makeTempFolder("envoy");
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const settings = { "envoy-config": join("..", folder.split("/").at(-1)!) };
  await expect(startTestService({ settings })).rejects.toThrow(
    /b\.yaml: domain: duplicate domain "shop", also in a\.yaml/,
  );
  await using service = await startTestService({ settings: { ...settings, "envoy-merge-domains": "true" } });
  const envoy = connectEnvoy(service.grpc);
  const ask = (key: string) => envoy.shouldRateLimit({ domain: "shop", descriptors: [descriptor({ [key]: "x" })] });
  for (const key of ["user", "b"]) {
    expect((await ask(key)).overallCode).toBe(OK);
    expect((await ask(key)).overallCode).toBe(OVER_LIMIT);
  }
  envoy.close();
});

describe("a folder with mistakes ends the start with status 2", () => {
  const folder = makeTempFolder("envoy");
  writeFileSync(join(folder, "bad.yaml"), "domain: ''\ndescriptors: [{ key: a, value: 1.0 }]");
  const start = (...more: string[]) =>
    runSluice([
      "serve",
      "--port",
      "0",
      "--grpc-port",
      "0",
      "--data-folder",
      makeTempFolder("data"),
      "--envoy-config",
      folder,
      ...more,
    ]);
  const expectMistakes = ({ status, stderr }: Awaited<ReturnType<typeof start>>) => {
    expect(stderr).toContain("envoy-config: bad.yaml: domain: expected a name that is not empty");
    expect(stderr).toContain("envoy-config: bad.yaml: descriptors[0].value: expected a text");
    expect(status).toBe(2);
  };

  test("with the memory store", async () => expectMistakes(await start()));

  describe.skipIf(whyMissing("redis"))("with Redis", () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());

    test("in one process", async () => expectMistakes(await start("--store", redis.url)));
    test("with workers", async () => expectMistakes(await start("--store", redis.url, "--workers", "2")));
    test("an attributes file with mistakes ends it too", async () => {
      const file = join(folder, "..", "attributes.yaml");
      writeFileSync(file, "nonsense: true");
      const good = makeTempFolder("envoy");
      const { status } = await runSluice([
        "serve",
        "--port",
        "0",
        "--grpc-port",
        "0",
        "--data-folder",
        makeTempFolder("data"),
        "--envoy-config",
        good,
        "--attributes",
        file,
        "--store",
        redis.url,
      ]);
      expect(status).toBe(2);
    });
  });

  test("with a Redis that cannot be reached", async () =>
    expectMistakes(await start("--store", "redis://127.0.0.1:1")));
});

test("a swapped link, as Kubernetes swaps a ConfigMap, brings the new limits; a broken one keeps the old", async () => {
  const folder = makeTempFolder("envoy");
  const publish = (version: string, text: string) => {
    mkdirSync(join(folder, `..${version}`));
    writeFileSync(join(folder, `..${version}`, "shop.yaml"), text);
    symlinkSync(`..${version}`, join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
  };
  publish("1", perDay("shop", 1));
  symlinkSync("..data/shop.yaml", join(folder, "shop.yaml"));
  await using service = await startTestService({ settings: { "envoy-config": join("..", folder.split("/").at(-1)!) } });
  const envoy = connectEnvoy(service.grpc);
  expect(await admittedOf(envoy, "shop", 4)).toBe(1);
  publish("2", perDay("shop", 2));
  rmSync(join(folder, "..1"), { recursive: true });
  await until(async () => (await admittedOf(envoy, "shop", 4)) === 2);
  publish("3", "domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: eon } }]");
  const failed = async () =>
    (await (await fetch(`${service.http}/metrics`)).text()).includes('reloads_total{outcome="failed"} 1');
  await until(failed);
  expect(await admittedOf(envoy, "shop", 4)).toBe(2);
  publish("4", perDay("shop", 3));
  await until(async () => (await admittedOf(envoy, "shop", 4)) === 3);
  envoy.close();
});

describe("starter rules", () => {
  test("never meet requests of Envoy", async () => {
    await using service = await startTestService();
    expect(service.rules.map(({ id }) => id)).toContain("starter-per-user");
    const envoy = connectEnvoy(service.grpc);
    expect(await admittedOf(envoy, "shop", 12)).toBe(12);
    envoy.close();
  });

  test("are not in force beside limits of Envoy's, also where a database has them already", async () => {
    const first = await startTestService();
    const database = `sqlite:${join(makeTempFolder("database"), "rules.db")}`;
    await first.close();
    await (await startTestService({ settings: { database } })).close();
    const folder = makeTempFolder("envoy");
    writeFileSync(join(folder, "shop.yaml"), perDay("shop"));
    const settings = { "envoy-config": join("..", folder.split("/").at(-1)!) };
    for (const more of [{}, { database }]) {
      await using service = await startTestService({ settings: { ...settings, ...more } });
      expect(service.rules.filter(({ id }) => !id.startsWith("envoy."))).toEqual([]);
      expect((await fetch(`${service.http}/readyz`)).status).toBe(200);
    }
  });
});
