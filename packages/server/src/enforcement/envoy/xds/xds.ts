/**
 * Limits from a control plane (`--envoy-xds`): received, brought in force, kept for a start at which the control plane is away.
 */
import type { Log } from "../../../log.js";
import { type TreeOptions, treeOf } from "../config-tree.js";
import { readResources } from "../descriptor-config.js";
import type { LimitTree } from "../limit-tree.js";
import { XdsClient, type XdsServer } from "./xds-client.js";
import { type DiscoveryResponse, type XdsCodec, xdsCodec } from "./xds-messages.js";

export interface XdsOptions extends TreeOptions {
  readonly server: XdsServer;
  /** The last good limits, as text. */
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
  const codec = xdsCodec();
  await restore(codec, options);
  const accept = async (response: DiscoveryResponse): Promise<void> => {
    const tree = readTree(response.resources, { codec, ...options });
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
  return new XdsClient({ server, codec, log, accept, onOutcome: onReload, onConnection });
}

/** Throws with every mistake of a resource that can be read, one a line. */
function readTree(
  resources: DiscoveryResponse["resources"],
  { codec, ...options }: TreeOptions & { codec: XdsCodec },
): LimitTree {
  const read = resources.map((resource) => codec.readResource(resource));
  const outcome = readResources(read);
  if ("mistakes" in outcome) throw new Error(outcome.mistakes.join("\n"));
  const given = outcome.domains.map((domain, i) => ({ domain, from: JSON.stringify(read[i]!.name) }));
  const built = treeOf(given, options);
  if ("mistakes" in built) throw new Error(built.mistakes.join("\n"));
  return built.tree;
}

async function restore(
  codec: XdsCodec,
  options: XdsOptions & { log: Log; apply: (tree: LimitTree) => Promise<void> },
): Promise<void> {
  const { kept, log, apply } = options;
  const text = await kept.load();
  if (text === undefined) return;
  try {
    const tree = readTree(parse(text), { codec, ...options });
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
