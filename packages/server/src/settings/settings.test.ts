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

test("without any input, every setting has its default", () => {
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

test("all mistakes are reported at once", () => {
  const flags = { port: "x", workers: "0", store: "redis:", upstream: "ftp://x", "log-level": "loud" };
  expect(() => resolveSettings({ flags, env: {} })).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(/--port.*\n--workers.*\n--store.*\n--upstream.*\n--log-level/),
    }),
  );
});

test.each([
  ["metrics-address", "127.0.0.1:65536"],
  ["envoy-xds", "gateway:99999"],
  ["upstream-headers", "é=x"],
  ["upstream-headers", "authorization=Bearer é"],
  ["envoy-xds-headers", "é=x"],
  ["envoy-xds-headers", "token-bin=x"],
  ["smtp-url", "smtp://100%:x@mail.example"],
  ["smtp-from", "a@b.example\r\nBcc: c@d.example"],
  ["data-folder", "a\0b"],
  ["region", "\ud800"],
])("--%s %j is refused at the start, not where it is used", (name, given) => {
  expect(() => resolveSettings({ flags: { [name]: given }, env: {} })).toThrow(`--${name}: expected `);
});

test("valid header names and values are accepted", () => {
  const flags = { "upstream-headers": "authorization=Bearer a=b,x-y=", "envoy-xds-headers": "Token=a b" };
  expect(resolveSettings({ flags, env: {} })).toMatchObject({
    "upstream-headers": { authorization: "Bearer a=b", "x-y": "" },
    "envoy-xds-headers": { Token: "a b" },
  });
});

test("a YAML mapping that contains itself through an alias is a mistake with its position", () => {
  const file = configFile("port: &a { x: *a }\nworkers: &b [*b]\n");
  expect(() => resolveSettings({ flags: {}, env: {}, configFile: file })).toThrow(
    expect.objectContaining({
      code: "invalid-setting",
      message: expect.stringMatching(/^port in .*got a list or a mapping\nworkers in .*got a list or a mapping$/),
    }),
  );
});

test("a message about a long value shows its beginning and its length", () => {
  const port = "x".repeat(100_000);
  expect(() => resolveSettings({ flags: { port }, env: {} })).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(/^--port: expected .* got "x{199}… \(100000 characters\)$/),
    }),
  );
});

test("a file that was named must exist; the default one may be absent", () => {
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

test("no message about a mistake leaks a secret: not a token, not a password in a URL, not a line of the file", () => {
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

test.each(["openai", "anthropic", "/", "/usageMetadata", "/a/b~1c/*"])("--usage accepts %s", (usage) => {
  const settings = resolveSettings({ flags: { usage, upstream: "http://127.0.0.1:9" }, env: {} });
  expect(settings.usage).toBe(usage);
});

test.each(["opneai", "usage", "//a", "/a/", "/a b", "/~2", ""])("--usage refuses %j", (usage) => {
  const flags = { usage, upstream: "http://127.0.0.1:9" };
  expect(() => resolveSettings({ flags, env: {} })).toThrow(
    "openai, anthropic, or a JSON pointer such as /usageMetadata",
  );
});

test("--usage requires the proxy", () => {
  expect(() => resolveSettings({ flags: { usage: "openai" }, env: {} })).toThrow(
    "usage: expected --upstream beside it",
  );
});
