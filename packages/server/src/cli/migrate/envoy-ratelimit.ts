/**
 * envoyproxy/ratelimit's files -> rules. The service can also read those files directly (`--envoy-config`), with their exact semantics;
 * rules are for people who want to change limits in the console, or without Envoy.
 * In: a file's text. Out: rules and notes. Pure.
 */
import { type Descriptor, parseDomains, unitSeconds } from "../../enforcement/envoy/descriptor-config.js";
import { type Migrated, Migration } from "./migrated.js";

export function migrateEnvoy(text: string): Migrated {
  const migration = new Migration();
  const read = parseDomains(text);
  if ("mistakes" in read) throw new Error(read.mistakes.join("\n"));
  for (const { domain, descriptors } of read.domains) {
    addAll(descriptors, { migration, name: domain, match: { domain }, key: [] });
  }
  migration.note(
    "in files a limit holds for descriptors of exactly its entries; as a rule it also holds for descriptors that have more",
  );
  return migration;
}

interface Above {
  readonly migration: Migration;
  readonly name: string;
  readonly match: Readonly<Record<string, string>>;
  readonly key: readonly string[];
}

function addAll(descriptors: readonly Descriptor[], above: Above): void {
  for (const descriptor of descriptors) {
    const { key, value, limit, shadow, quota, shareThreshold } = descriptor;
    const isOpen = value === "" || value.includes("*");
    const name = `${above.name}.${key}${value === "" ? "" : `-${value}`}`;
    // In rules `*` stops at a slash, in these files it does not.
    const match = value === "" ? above.match : { ...above.match, [key]: value.replaceAll("*", "**") };
    const counted = isOpen && !shareThreshold ? [...above.key, key] : above.key;
    const inner = { ...above, name, match, key: counted };
    const { migration } = above;
    if (quota) migration.note(`${name}: quota_mode has no place in a rule: keep the file for it (--envoy-config)`);
    if (limit !== undefined && limit.replaces.length > 0)
      migration.note(`${name}: replaces ${limit.replaces.join(", ")}: both rules apply here`);
    if (limit?.unlimited === true) migration.note(`${name}: unlimited: no rule`);
    else if (limit !== undefined) {
      const { algorithm = "fixed-window", ...extra } = limit.extra;
      const window = limit.unit === "" ? {} : { window: `${unitSeconds[limit.unit]}s` };
      migration.add(name, {
        match,
        key: counted,
        algorithm,
        limit: limit.requestsPerUnit,
        ...window,
        ...extra,
        ...(shadow && { mode: "shadow" }),
      });
    }
    addAll(descriptor.descriptors, inner);
  }
}
