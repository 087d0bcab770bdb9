import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { resolveSettings, settingNames, settingSpecs, variableOf } from "./settings.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-settings-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function configFile(text: string): string {
  const file = join(folder, "sluice.yaml");
  writeFileSync(file, text);
  return file;
}

test("without anything, every default holds", () => {
  const settings = resolveSettings({ flags: {}, env: {} });
  expect(settings).toMatchObject({
    host: "127.0.0.1",
    port: 8080,
    "grpc-port": 8081,
    store: "memory",
    workers: 1,
    "store-deadline": 50,
  });
  expect(settings["api-token"]).toBeUndefined();
});

test("a flag wins over a variable, a variable over the file, the file over the default", () => {
  const file = configFile("port: 1\ngrpc-port: 1\nproxy-port: 1\nlegacy-headers: true\n");
  const env = { SLUICE_PORT: "2", SLUICE_GRPC_PORT: "2", SLUICE_HOST: "" };
  const settings = resolveSettings({ flags: { port: "3" }, env, configFile: file });
  expect([settings.port, settings["grpc-port"], settings["proxy-port"], settings.host]).toEqual([3, 2, 1, "127.0.0.1"]);
  expect(settings["legacy-headers"]).toBe(true);
});

test("all mistakes are told at once", () => {
  const flags = { port: "x", workers: "0", store: "redis:", upstream: "ftp://x", "log-level": "loud" };
  expect(() => resolveSettings({ flags, env: {} })).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(/--port.*\n--workers.*\n--store.*\n--upstream.*\n--log-level/),
    }),
  );
});

test("a file that was named must be there; the usual one may be absent", () => {
  expect(() => resolveSettings({ flags: {}, env: {}, configFile: join(folder, "absent.yaml") })).toThrow("absent.yaml");
});

test.each(["redis://h:1", "rediss://h", "redis+sentinel://h1,h2/master", "redis+cluster://h1,h2"])(
  "%s is a store",
  (store) => {
    expect(resolveSettings({ flags: { store }, env: {} }).store).toBe(store);
  },
);

test("docs/settings.md lists the table, word for word", () => {
  const page = readFileSync(fileURLToPath(new URL("../../../../docs/settings.md", import.meta.url)), "utf8");
  const rows = [...page.matchAll(/^\| `--([a-z-]+)` \| `(\w+)` \| (.*?) \| (.*) \|$/gm)].map(([, ...cells]) => cells);
  const expected = settingNames.map((name) => {
    const spec = settingSpecs[name];
    const byDefault = "default" in spec ? `\`${spec.default}\`` : "";
    return [name, variableOf(name), byDefault, spec.meaning.replaceAll("|", "\\|")];
  });
  expect(rows).toEqual(expected);
});

test("no message about a mistake tells a secret: not a token, not a password in a URL, not a line of the file", () => {
  const messageOf = (flags: Record<string, string>, text?: string): string => {
    try {
      resolveSettings({ flags, env: {}, ...(text !== undefined && { configFile: configFile(text) }) });
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  };
  const told = [
    messageOf({ "envoy-xds": "http://user:hunter2@gateway:18001" }),
    messageOf({ store: "redi://user:hunter2@store" }),
    messageOf({ database: "mysql://user:hunt/er2@p@db/x" }),
    messageOf({}, "envoy-xds-headers: { authorization: hunter2 }\n"),
    messageOf({}, "store: [redis://user:hunter2@store]\n"),
    messageOf({}, 'admin-token: "hunter2\n'),
  ];
  expect(told.filter((message) => message === "")).toEqual([]);
  expect(told.join("\n")).not.toMatch(/hunt/);
});

test.each(["openai", "anthropic", "/", "/usageMetadata", "/a/b~1c/*"])("--usage takes %s", (usage) => {
  const settings = resolveSettings({ flags: { usage, upstream: "http://127.0.0.1:9" }, env: {} });
  expect(settings.usage).toBe(usage);
});

test.each(["opneai", "usage", "//a", "/a/", "/a b", "/~2", ""])("--usage refuses %j", (usage) => {
  const flags = { usage, upstream: "http://127.0.0.1:9" };
  expect(() => resolveSettings({ flags, env: {} })).toThrow(
    "openai, anthropic, or a JSON pointer such as /usageMetadata",
  );
});

test("usage is read by the proxy alone", () => {
  expect(() => resolveSettings({ flags: { usage: "openai" }, env: {} })).toThrow(
    "usage: expected --upstream beside it",
  );
});
