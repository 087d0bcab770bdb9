/**
 * The folder of `--envoy-config`: read whole, watched, swapped whole. A bad edit keeps what was in force and says what is wrong.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { SluiceError, validateRules } from "sluice";
import type { Log } from "../../log.js";
import { type Domain, parseDomain } from "./descriptor-config.js";
import { ruleOf } from "./envoy-rules.js";
import { LimitTree } from "./limit-tree.js";

/** Folders mounted from a Kubernetes ConfigMap change by a swapped link, which file watchers miss; looking is cheap. */
const LOOK_EVERY_MS = 500;

/** Throws `invalid-setting` with every mistake, one a line, each with its file. */
export function readConfigFolder(folder: string): LimitTree {
  const mistakes: string[] = [];
  const domains: Domain[] = [];
  const fileOf = new Map<string, string>();
  for (const file of configFiles(folder)) {
    const outcome = parseDomain(readFileSync(join(folder, file), "utf8"));
    if ("mistakes" in outcome) {
      mistakes.push(...outcome.mistakes.map((mistake) => `${file}: ${mistake}`));
      continue;
    }
    const { domain } = outcome.domain;
    const other = fileOf.get(domain);
    if (other !== undefined)
      mistakes.push(`${file}: domain: duplicate domain ${JSON.stringify(domain)}, also in ${other}`);
    fileOf.set(domain, file);
    domains.push(outcome.domain);
  }
  const tree = new LimitTree(domains);
  if (mistakes.length === 0) mistakes.push(...numberMistakes(tree));
  if (mistakes.length === 0) return tree;
  throw new SluiceError("invalid-setting", mistakes.map((mistake) => `envoy-config: ${mistake}`).join("\n"));
}

/** What only the rule table knows: whether an algorithm's numbers fit it. */
function numberMistakes({ limits }: LimitTree): string[] {
  return limits.flatMap((placed) => {
    const rule = ruleOf(placed);
    const outcome = rule === undefined ? undefined : validateRules([rule]);
    if (outcome === undefined || "rules" in outcome) return [];
    const place = [
      placed.domain,
      ...placed.path.map(({ key, value }) => (value === "" ? key : `${key}=${value}`)),
    ].join(" > ");
    return outcome.mistakes.map(({ path, message }) => `${place}: ${path.replace(/^rules\[0\]\.?/, "")}: ${message}`);
  });
}

export interface WatchedFolder {
  readonly tree: LimitTree;
  close(): void;
}

export function watchConfigFolder(options: {
  folder: string;
  log: Log;
  onReload: (outcome: "loaded" | "failed") => void;
  onChange: (tree: LimitTree) => void;
}): WatchedFolder {
  const { folder, log, onReload, onChange } = options;
  let tree = readConfigFolder(folder);
  onReload("loaded");
  let seen = fingerprint(folder);
  const look = (): void => {
    const now = fingerprint(folder);
    if (now === seen) return;
    seen = now;
    try {
      tree = readConfigFolder(folder);
      onChange(tree);
      onReload("loaded");
      log.info("Envoy's limits were read again", { folder, limits: tree.limits.length });
    } catch (error) {
      onReload("failed");
      log.error("Envoy's limits have mistakes; those in force stay", { folder, mistakes: (error as Error).message });
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  timer.unref();
  return {
    get tree() {
      return tree;
    },
    close: () => clearInterval(timer),
  };
}

function configFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /\.ya?ml$/.test(name) && !name.startsWith("."))
    .sort();
}

/** Changes when a file appears, goes, or is written. */
function fingerprint(folder: string): string {
  try {
    return configFiles(folder)
      .map((name) => {
        const { mtimeMs, size, ino } = statSync(join(folder, name));
        return `${name} ${mtimeMs} ${size} ${ino}`;
      })
      .join("\n");
  } catch (error) {
    // Between two links of a swapped folder there is nothing for a moment; then the next look sees the new one.
    return `unreadable: ${(error as NodeJS.ErrnoException).code}`;
  }
}
