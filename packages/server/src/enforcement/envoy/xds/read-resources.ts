/** Converts a control plane's resources to domains. In: protobuf. Out: checked domains. Throws with every mistake, one per line. */
import { checkedDomains, type TreeOptions } from "../config-tree.js";
import { type Domain, readResources } from "../descriptor-config.js";
import { type DiscoveryResponse, resourceReader } from "./xds-messages.js";

export function readResourceDomains(resources: DiscoveryResponse["resources"], options: TreeOptions): Domain[] {
  const readResource = resourceReader();
  const read = resources.map((resource) => readResource(resource));
  const outcome = readResources(read);
  if ("mistakes" in outcome) throw new Error(outcome.mistakes.join("\n"));
  const given = outcome.domains.map((domain, i) => ({ domain, from: JSON.stringify(read[i]!.name) }));
  const checked = checkedDomains(given, options);
  if ("mistakes" in checked) throw new Error(checked.mistakes.join("\n"));
  return checked.domains;
}
