/**
 * Limits from a control plane (`--envoy-xds`): receives them, puts them in force, and persists them for a start while the control plane is
 * down.
 */
import type { Log } from "../../../log.js";
import type { TreeOptions } from "../config-tree.js";
import type { LimitTree } from "../limit-tree.js";
import { type LimitTask, readLimits } from "../limit-worker.js";
import { XdsClient, type XdsServer } from "./xds-client.js";
import { type DiscoveryResponse, xdsCodec } from "./xds-messages.js";

export interface XdsOptions extends TreeOptions {
  readonly server: XdsServer;
  /** Persists the last good limits, as text. */
  readonly kept: {
    load(): Promise<string | undefined>;
    save(text: string): Promise<void>;
  };
}

export type StartXds = typeof startXds;

export async function startXds(
  options: XdsOptions & {
    log: Log;
    onReload: (outcome: "loaded" | "failed") => void;
    onConnection: (connected: boolean) => void;
    apply: (tree: LimitTree) => Promise<void>;
  },
): Promise<{ close(): void }> {
  const { server, kept, log, apply, onReload, onConnection } = options;
  await restore(options);
  const accept = async (response: DiscoveryResponse): Promise<void> => {
    const { tree } = await readLimits(taskOf(response.resources, options));
    await apply(tree);
    log.info("limits from the control plane are in force", {
      server: server.address,
      version: response.versionInfo,
      limits: tree.limits.length,
    });
    await kept.save(spell(response)).catch((error) => {
      log.warn("the limits could not be kept for the next start", { error: String(error) });
    });
  };
  return new XdsClient({ server, codec: xdsCodec(), log, accept, onOutcome: onReload, onConnection });
}

/** Only data that can be cloned to a thread. */
function taskOf(resources: DiscoveryResponse["resources"], { merge, allQuotas }: TreeOptions): LimitTask {
  return {
    resources: resources.map(({ type_url, value }) => ({ type_url, value })),
    options: { merge, ...(allQuotas !== undefined && { allQuotas }) },
  };
}

async function restore(options: XdsOptions & { log: Log; apply: (tree: LimitTree) => Promise<void> }): Promise<void> {
  const { kept, log, apply } = options;
  const text = await kept.load();
  if (text === undefined) return;
  try {
    const { tree } = await readLimits(taskOf(parse(text), options));
    await apply(tree);
    log.info("limits of the last run are in force until the control plane sends others", {
      limits: tree.limits.length,
    });
  } catch (error) {
    log.warn("the limits of the last run cannot be used", { error: String(error) });
  }
}

function spell({ versionInfo, resources }: DiscoveryResponse): string {
  return JSON.stringify({
    version: versionInfo,
    resources: resources.map(({ type_url, value }) => [type_url, Buffer.from(value).toString("base64")]),
  });
}

function parse(text: string): DiscoveryResponse["resources"] {
  const { resources } = JSON.parse(text) as { resources: [string, string][] };
  return resources.map(([type_url, value]) => ({ type_url, value: Buffer.from(value, "base64") }));
}
