/** That an adapter loads its own framework at most, and the library none: in fresh processes, on the built package. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const frameworks = ["express", "express4", "fastify", "hono", "koa", "@nestjs/common", "express-rate-limit", "ioredis"];

/** Which of the packages a process has loaded after `require`; modules loaded by require are listed, also those in ESM. */
function loadedBy(entryPoint: string): string[] {
  const script = `
    require(${JSON.stringify(entryPoint)});
    const files = Object.keys(require.cache).join("\\n");
    console.log(JSON.stringify(${JSON.stringify(frameworks)}.filter((name) => files.includes("/node_modules/" + name + "/"))));
  `;
  return JSON.parse(execFileSync(process.execPath, ["--no-warnings", "-e", script], { cwd: root, encoding: "utf8" }));
}

test.each([
  ["sluice", []],
  ["sluice/http", []],
  ["sluice/client", []],
  ["sluice/express", []],
  ["sluice/fastify", []],
  ["sluice/hono", []],
  ["sluice/koa", []],
  ["sluice/express-rate-limit", []],
  ["sluice/nest", ["@nestjs/common"]],
  ["sluice/redis", ["ioredis"]],
  ["sluice/internal", ["ioredis"]],
])("%s loads %j of the packages it works with", (entryPoint, expected) => {
  expect(loadedBy(entryPoint)).toEqual(expected);
});
