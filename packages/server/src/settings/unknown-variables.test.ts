import { expect, test } from "vitest";
import { ignoredVariables, resolveSettings } from "./settings.js";

const warnings = (env: Record<string, string>): string[] =>
  ignoredVariables(env).map(({ name, why }) => `${name}: ${why}`);

test("a misspelled variable is reported, with a suggestion", () => {
  expect(
    warnings({ SLUICE_PROT: "8080", SLUICE_STORE: "memory", SLUICE_DRAIN_DELAYS: "1s", SLUICE_WHATEVER: "x" }),
  ).toEqual([
    "SLUICE_PROT: no setting has this name (did you mean SLUICE_PORT?)",
    "SLUICE_DRAIN_DELAYS: no setting has this name (did you mean SLUICE_DRAIN_DELAY?)",
    "SLUICE_WHATEVER: no setting has this name (sluice serve --help lists them)",
  ]);
});

test("variables of commands and tests, empty ones and those of other programs are not reported", () => {
  const env = { SLUICE_SERVER: "http://x", SLUICE_CONFIG: "a.yaml", SLUICE_TEST_SEED: "1", SLUICE_PEER_ER: "x" };
  expect(warnings({ ...env, SLUICE_PROT: "", PORT: "1", SLUICEGATE: "open", sluice_prot: "1" })).toEqual([]);
});

test("a Kubernetes Service called sluice neither breaks the start nor causes a warning", () => {
  const links = {
    SLUICE_SERVICE_HOST: "10.0.0.7",
    SLUICE_SERVICE_PORT: "8080",
    SLUICE_SERVICE_PORT_HTTP: "8080",
    SLUICE_PORT: "tcp://10.0.0.7:8080",
    SLUICE_PORT_8080_TCP: "tcp://10.0.0.7:8080",
    SLUICE_PORT_8080_TCP_ADDR: "10.0.0.7",
    SLUICE_SLUICE_PORT: "tcp://10.0.0.7:8080",
  };
  expect(warnings(links)).toEqual([]);
  expect(resolveSettings({ flags: {}, env: links }).port).toBe(8080);
  expect(() => resolveSettings({ flags: {}, env: { SLUICE_PORT: "tcp" } })).toThrow("SLUICE_PORT");
});
