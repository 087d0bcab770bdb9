/** What is under deploy/: the chart, the manifests, the image, compose and the systemd units, as far as no container engine is needed. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { COLLECTOR_FLAGS } from "../../packages/server/src/service/collector-flags.js";
import { settingNames, variableOf } from "../../packages/server/src/settings/settings.js";
import { root } from "../../scripts/run-command.mjs";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import type { Json } from "../service/running-service.js";

const execute = promisify(execFile);
const read = (file: string): string => readFileSync(join(root, "deploy", file), "utf8");
const variables = new Set(settingNames.map(variableOf));
/** "10s" -> 10. */
const seconds = (text: string): number => Number(/^(\d+)s$/.exec(text)![1]);

const chart = join(root, "deploy/helm/sluice");
const secret = ["store=redis://redis:6379", "apiToken=an-api-token-of-mine", "adminToken=an-admin-token-of-mine"];
const set = (...values: string[]) => [...secret, ...values].flatMap((value) => ["--set", value]);
const rules = ["--set-json", 'rules=[{"id":"a","key":["user"],"algorithm":"gcra","limit":5,"window":"1m"}]'];
const everything = set("autoscaling.enabled=true", "networkPolicy.enabled=true", "serviceMonitor.enabled=true");
const helm = (...args: string[]) => execute(components.helm.find()!, args);
const documentsOf = (yaml: string): Json[] => parseAllDocuments(yaml).map((document) => document.toJS());
const render = async (...args: string[]): Promise<Json[]> =>
  documentsOf((await helm("template", "my", chart, ...args)).stdout);

describe.skipIf(whyMissing("helm"))("the Helm chart", () => {
  test("lints", async () => {
    const { stdout } = await helm("lint", "--strict", chart, ...set(), ...rules);
    expect(stdout).toContain("0 chart(s) failed");
  });

  test("makes what the service knows: variables that are settings, probes that are routes, one selector", async () => {
    const made = await render(...everything, ...rules, "--set", "settings.store-deadline=100ms");
    const kinds = made.map(({ kind }) => kind).sort();
    expect(kinds).toEqual([
      "ConfigMap",
      "Deployment",
      "HorizontalPodAutoscaler",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "Secret",
      "Service",
      "ServiceMonitor",
    ]);
    const { spec } = made.find(({ kind }) => kind === "Deployment");
    const [container] = spec.template.spec.containers;
    const names: string[] = container.env.map(({ name }: Json) => name);
    expect(names.filter((name) => !variables.has(name))).toEqual([]);
    expect(names).toEqual(expect.arrayContaining(["SLUICE_STORE_DEADLINE", "SLUICE_RULES", "SLUICE_API_TOKEN"]));
    expect(container.livenessProbe.httpGet.path).toBe("/healthz");
    expect(container.readinessProbe.httpGet.path).toBe("/readyz");
    expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
    expect(spec.template.spec.securityContext).toMatchObject({ runAsNonRoot: true });
    const labels = spec.template.metadata.labels;
    const service = made.find(({ kind }) => kind === "Service");
    const budget = made.find(({ kind }) => kind === "PodDisruptionBudget");
    for (const selector of [spec.selector.matchLabels, service.spec.selector, budget.spec.selector.matchLabels]) {
      expect(selector).toEqual(labels);
    }
    expect(parse(made.find(({ kind }) => kind === "ConfigMap").data["rules.yaml"]).rules).toHaveLength(1);
  });

  test("gives a pod more time to end than it takes to drain, and turns away before it closes", async () => {
    const { spec } = (await render(...set(), ...rules)).find(({ kind }) => kind === "Deployment");
    const { terminationGracePeriodSeconds, containers } = spec.template.spec;
    const env = Object.fromEntries(containers[0].env.map(({ name, value }: Json) => [name, value]));
    const delay = seconds(env.SLUICE_DRAIN_DELAY);
    expect(terminationGracePeriodSeconds).toBeGreaterThan(delay + seconds(env.SLUICE_DRAIN_TIMEOUT));
    const { periodSeconds, failureThreshold, timeoutSeconds } = containers[0].readinessProbe;
    expect(delay).toBeGreaterThan(periodSeconds * failureThreshold + timeoutSeconds);
  });

  test.each([
    [
      "no store",
      ["--set", "apiToken=an-api-token-of-mine,adminToken=an-admin-token-of-mine", ...rules],
      /store: expected/,
    ],
    ["no token", ["--set", "store=redis://redis", ...rules], /Token: expected/],
    ["neither rules nor a database", set(), /rules or database: expected/],
  ])("stops without %s, and says what is missing", async (_what, args, message) => {
    await expect(helm("template", "my", chart, ...args)).rejects.toThrow(message);
  });

  test("a Secret of one's own needs no value in the chart's", async () => {
    const made = await render("--set", "existingSecret=mine");
    expect(made.some(({ kind }) => kind === "Secret")).toBe(false);
    expect(JSON.stringify(made)).toContain('"secretKeyRef":{"name":"mine","key":"store"}');
  });

  test("deploy/kubernetes is what the chart makes; `helm template` as its first line says writes it anew", async () => {
    const file = read("kubernetes/sluice.yaml");
    const command = /^# helm (.*) >/m.exec(file)![1]!.split(" ");
    const { stdout } = await execute(components.helm.find()!, command, { cwd: root });
    expect(file.slice(file.indexOf("\n---") + 1)).toBe(stdout);
  });
});

test.skipIf(whyMissing("helm", "kubernetesValidate"))(
  "Kubernetes knows every field: of the manifests, and of the chart without and with all of its options",
  async () => {
    const folder = makeTempFolder("manifests");
    const files = { ...(await manifests()), misspelt: [await misspeltDeployment()] };
    for (const [name, documents] of Object.entries(files)) {
      writeFileSync(join(folder, name), documents.map((document) => `---\n${JSON.stringify(document)}\n`).join(""));
    }
    const versions = ["1.30", "1.37"];
    const { lines, code } = await validateManifests({ folder, files: Object.keys(files), versions });
    const expected = Object.entries(files).flatMap(([file, documents]) =>
      documents.flatMap((document) => versions.map((version) => expectedVerdict({ file, document, version }))),
    );
    expect(lines.sort()).toEqual(expected.sort());
    expect(code).toBe(1);
  },
);

function expectedVerdict({ file, document, version }: { file: string; document: Json; version: string }): string {
  const { apiVersion, kind, metadata } = document;
  const resource = `resource ${kind.toLowerCase()}/${metadata.name} against version ${version}`;
  if (file === "misspelt") {
    const found = "Additional properties are not allowed ('readynessProbe' was unexpected)";
    return `ERROR ${file} did not validate for ${resource}: spec.template.spec.containers.0: ${found}`;
  }
  if (kindsWithoutSchema.includes(kind)) {
    const sought = `kind ${kind} with api version ${apiVersion} for kubernetes version ${version}`;
    return `WARN ${file} Couldn't find schema for ${sought}`;
  }
  return `INFO ${file} passed for ${resource}`;
}

/** Custom resources: their schemas come with the operators that define them, not with Kubernetes. */
const kindsWithoutSchema = ["ServiceMonitor"];

/** By name: what a cluster would be given. */
async function manifests(): Promise<Record<string, Json[]>> {
  const files = ["kubernetes", "envoy-gateway"].flatMap((folder) =>
    readdirSync(join(root, "deploy", folder)).map((file) => `${folder}/${file}`),
  );
  const [config] = documentsOf(read("envoy-gateway/envoy-gateway.yaml"));
  const { provider } = parse(config.data["envoy-gateway.yaml"]);
  // Envoy Gateway merges this into a Deployment of its own: the pod is the part that can be held against a schema.
  const { template } = provider.kubernetes.rateLimitDeployment.patch.value.spec;
  return {
    ...Object.fromEntries(files.map((file) => [file.replace("/", "-"), documentsOf(read(file))])),
    "patched-pod": [{ apiVersion: "v1", kind: "PodTemplate", metadata: { name: "patched" }, template }],
    "chart-defaults": await render(...set("database=postgres://db/sluice")),
    "chart-everything": await render(...everything, ...rules, ...allOptions),
  };
}

const allOptions = [
  'networkPolicy.from=[{"namespaceSelector":{"matchLabels":{"team":"web"}}}]',
  'networkPolicy.to=[{"ipBlock":{"cidr":"10.0.0.0/8"}}]',
  'serviceMonitor.labels={"release":"prometheus"}',
  'nodeSelector={"kubernetes.io/arch":"arm64"}',
  'tolerations=[{"key":"limits","operator":"Exists","effect":"NoSchedule"}]',
  'settings={"store-deadline":"100ms"}',
  'service={"type":"LoadBalancer"}',
].flatMap((value) => ["--set-json", value]);

async function misspeltDeployment(): Promise<Json> {
  const deployment = (await render(...set(), ...rules)).find(({ kind }) => kind === "Deployment");
  const [container] = deployment.spec.template.spec.containers;
  container.readynessProbe = container.readinessProbe;
  delete container.readinessProbe;
  return deployment;
}

/** One process for all: starting Python and reading its modules takes longer than the documents do. */
async function validateManifests(options: { folder: string; files: string[]; versions: string[] }) {
  const program = components.kubernetesValidate.find()!;
  const versions = options.versions.flatMap((version) => ["-k", version]);
  const env = { ...process.env, PYTHONPATH: dirname(dirname(program)), PYTHONDONTWRITEBYTECODE: "1" };
  const ran = execute(program, ["--strict", ...versions, ...options.files], { cwd: options.folder, env });
  const { stdout, code = 0 } = await ran.catch((error: Json) => error);
  return { lines: stdout.trim().split("\n") as string[], code: code as number };
}

describe("the image", () => {
  const dockerfile = read("docker/Dockerfile");
  const last = dockerfile.slice(dockerfile.lastIndexOf("\nFROM"));

  test.skipIf(whyMissing("hadolint"))("lints", async () => {
    const { stdout } = await execute(components.hadolint.find()!, [join(root, "deploy/docker/Dockerfile")]);
    expect(stdout).toBe("");
  });

  test("runs Node 24 as a user without rights, in exec form, with a health check, and holds no build tools", () => {
    expect(dockerfile).toContain("FROM node:24-");
    expect(last).toMatch(/^\nFROM scratch\nCOPY --from=build \/image \/\n/);
    expect(last).toMatch(/^USER 65532:65532$/m);
    expect(last).toMatch(/^HEALTHCHECK .*\\\n +CMD \["node"/m);
    const entry = /^ENTRYPOINT (.+)$/m.exec(last)![1]!;
    expect(JSON.parse(entry)).toEqual(["node", ...COLLECTOR_FLAGS, "/app/node_modules/sluice-server/bin/sluice.js"]);
    expect(last).not.toMatch(/\bnpm\b/);
    for (const [, name] of last.matchAll(/^ +(SLUICE_\w+)=|ENV (SLUICE_\w+)=/gm)) expect(variables).toContain(name);
  });
});

test("compose: pinned images, settings that exist, files that exist, Redis that never evicts, time to drain", () => {
  const { services } = parse(read("compose/compose.yaml"));
  for (const { image, build } of Object.values<Json>(services)) {
    if (build === undefined) expect(image).toMatch(/:v?\d/);
  }
  expect(Object.keys(services.sluice.environment).filter((name) => !variables.has(name))).toEqual([]);
  expect(services.sluice.read_only).toBe(true);
  expect(seconds(services.sluice.stop_grace_period)).toBeGreaterThan(3 + 10);
  expect(services.redis.command.join(" ")).toContain("--maxmemory-policy noeviction");
  const mounts = Object.values<Json>(services).flatMap(({ volumes = [] }) => volumes as string[]);
  const files = mounts.map((mount) => mount.split(":")[0]!).filter((path) => path.startsWith("."));
  expect(files.filter((path) => !existsSync(join(root, "deploy/compose", path)))).toEqual([]);
  const [target] = parse(read("compose/prometheus.yml")).scrape_configs[0].static_configs[0].targets;
  expect(target).toBe(`sluice:${services.sluice.environment.SLUICE_METRICS_ADDRESS.split(":")[1]}`);
});

describe.skipIf(whyMissing("systemd"))("the systemd units", () => {
  test("verify, where the program is, and leave little exposed", async () => {
    // systemd-analyze looks for the program: here the paths of the unit lead to a file that can be started.
    const folder = makeTempFolder("systemd");
    const program = join(folder, "node");
    mkdirSync(dirname(program), { recursive: true });
    writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
    for (const name of ["sluice.service", "sluice.socket"]) {
      writeFileSync(join(folder, name), read(`systemd/${name}`).replaceAll("/usr/bin/node", program));
    }
    const analyze = (...args: string[]) => execute(components.systemd.find()!, args, { cwd: folder });
    const { stderr } = await analyze("verify", "--man=no", "./sluice.service", "./sluice.socket");
    expect(stderr.split("\n").filter((line) => line.includes("sluice"))).toEqual([]);
    const { stdout } = await analyze("security", "--offline=yes", "--threshold=20", "--no-pager", "./sluice.service");
    expect(stdout).toMatch(/Overall exposure level for sluice\.service: [01]\./);
    expect(read("systemd/sluice.service")).toContain(`ExecStart=/usr/bin/node ${COLLECTOR_FLAGS.join(" ")} /opt/`);
  });
});
