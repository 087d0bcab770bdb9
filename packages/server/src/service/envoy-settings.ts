/** The Envoy settings, converted for the parts that use them: config folder, control plane, response options. */
import { digestOf } from "../configuration/document-text.js";
import { Snapshot } from "../configuration/snapshot.js";
import { type FolderOptions, readConfigFolder } from "../enforcement/envoy/config-folder.js";
import type { TreeOptions } from "../enforcement/envoy/config-tree.js";
import { ReferenceMetrics } from "../enforcement/envoy/reference-metrics.js";
import type { AnswerOptions } from "../enforcement/envoy/respond.js";
import type { XdsOptions } from "../enforcement/envoy/xds/xds.js";
import type { Settings } from "../settings/settings.js";

/** Operators who configure Envoy limits do not need the starter rules. */
export function hasOwnLimits(settings: Settings): boolean {
  return settings["envoy-config"] !== undefined || settings["envoy-xds"] !== undefined;
}

/** Runs before anything is opened, so that mistakes in the files are reported at once, even if the store is down. */
export function checkEnvoyFolder(settings: Settings): void {
  const folder = envoyFolder(settings);
  if (folder !== undefined) readConfigFolder(folder);
}

export function envoyFolder(settings: Settings): FolderOptions | undefined {
  const folder = settings["envoy-config"];
  return folder === undefined ? undefined : { folder, ...treeOptions(settings) };
}

export function xdsOf(settings: Settings): XdsOptions | undefined {
  const address = settings["envoy-xds"];
  if (address === undefined) return undefined;
  const nodeId = settings["envoy-xds-node-id"];
  const kept = new Snapshot({
    dataFolder: settings["data-folder"],
    origin: `${address} ${nodeId}`,
    file: "envoy-limits-snapshot",
  });
  const {
    "envoy-xds-ca": ca,
    "envoy-xds-cert": cert,
    "envoy-xds-key": key,
    "envoy-xds-server-name": serverName,
  } = settings;
  const usesTls = settings["envoy-xds-tls"] || [ca, cert, serverName].some((given) => given !== undefined);
  return {
    server: {
      address,
      nodeId,
      nodeMetadata: settings["envoy-xds-node-metadata"] ?? {},
      headers: settings["envoy-xds-headers"] ?? {},
      tls: usesTls ? { ca, cert, key, serverName } : undefined,
    },
    ...treeOptions(settings),
    kept: {
      load: async () => (await kept.load())?.document,
      save: (document) => kept.save({ version: 1, digest: digestOf(document), createdAtMs: Date.now(), document }),
    },
  };
}

function treeOptions(settings: Settings): TreeOptions {
  return { merge: settings["envoy-merge-domains"], allQuotas: settings["envoy-quota-mode"] };
}

export function envoyCounts(settings: Settings): ReferenceMetrics | undefined {
  if (!settings["envoy-metrics"]) return undefined;
  return new ReferenceMetrics({ nearLimitRatio: settings["envoy-near-limit-ratio"] });
}

export function envoyAnswers(settings: Settings): AnswerOptions {
  return {
    fields: settings["envoy-headers"],
    body: settings["envoy-body"],
    dynamicMetadata: settings["envoy-dynamic-metadata"],
    shadowMode: settings["envoy-shadow-mode"],
    allQuotas: settings["envoy-quota-mode"],
    countsRefused: settings["envoy-count-refused"],
    failsWithStore: settings["envoy-store-failure"] === "error",
  };
}
