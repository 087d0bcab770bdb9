/**
 * envoyproxy/ratelimit's configuration, as its YAML files say it: domains, descriptors, limits.
 * In: the text of a file. Out: a domain, or every mistake with its path. The keys and what is refused are those of the reference
 * implementation; `rate_limit` additionally takes an `algorithm` with its numbers, as rules do.
 */
import { parseDocument } from "yaml";

export interface Limit {
  /** The limit's own name, which `replaces` of another may list. */
  readonly name: string | undefined;
  readonly replaces: readonly string[];
  readonly unlimited: boolean;
  readonly requestsPerUnit: number;
  /** "" where `window` or an algorithm without one stands in its place. */
  readonly unit: Unit | "";
  /** What only Sluice understands: algorithm, window and other numbers, under the names that rules have. */
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface Descriptor {
  readonly key: string;
  /** "" fits every value. */
  readonly value: string;
  readonly limit: Limit | undefined;
  readonly shadow: boolean;
  readonly quota: boolean;
  /** One counter for all values that the wildcard fits. */
  readonly shareThreshold: boolean;
  readonly descriptors: readonly Descriptor[];
}

export interface Domain {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
}

export type Unit = "second" | "minute" | "hour" | "day" | "week" | "month" | "year";

/** In seconds. A month has 30 days and a year 365 in the reference implementation; windows are aligned to the epoch. */
export const unitSeconds: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
};

const rootKeys = new Set(["domain", "descriptors", "name"]);
const descriptorKeys = new Set([
  "key",
  "value",
  "rate_limit",
  "descriptors",
  "shadow_mode",
  "quota_mode",
  "detailed_metric",
  "value_to_metric",
  "share_threshold",
  "metadata",
]);
const limitKeys = new Set(["unit", "requests_per_unit", "unlimited", "name", "replaces"]);
/** The numbers of a rule, in the spelling of this file and in the rule's. */
const extraKeys: ReadonlyMap<string, string> = new Map([
  ["window", "window"],
  ["algorithm", "algorithm"],
  ["burst", "burst"],
  ["refill", "refill"],
  ["ttl", "ttl"],
  ["storage", "storage"],
  ["align", "align"],
  ["timezone", "timezone"],
  ["min_interval", "minInterval"],
  ["minInterval", "minInterval"],
  ["on_store_failure", "onStoreFailure"],
  ["onStoreFailure", "onStoreFailure"],
]);

const MOST_DEPTH = 32;

type Mapping = Record<string, unknown>;
type Report = (path: string, message: string) => void;

export function parseDomain(text: string): { domain: Domain } | { mistakes: string[] } {
  const mistakes: string[] = [];
  const report: Report = (path, message) => void mistakes.push(path === "" ? message : `${path}: ${message}`);
  // Aliases of aliases can grow a page into gigabytes; the reference's files have none.
  const document = parseDocument(text, { uniqueKeys: true });
  for (const { message } of document.errors) report("", message.split("\n")[0]!);
  if (mistakes.length > 0) return { mistakes };
  let content: unknown;
  try {
    content = document.toJS({ mapAsMap: false, maxAliasCount: 100 });
  } catch (error) {
    return { mistakes: [(error as Error).message] };
  }
  const domain = readRoot(content, report);
  return mistakes.length > 0 ? { mistakes } : { domain };
}

function readRoot(content: unknown, report: Report): Domain {
  const root = mappingAt(content, "", rootKeys, report);
  const domain = textAt(root, "domain", "", report);
  if (domain === "") report("domain", "expected a name that is not empty");
  return { domain, descriptors: readList(root.descriptors, "descriptors", report, 1) };
}

function readList(value: unknown, path: string, report: Report, depth: number): Descriptor[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    report(path, "expected a list of descriptors");
    return [];
  }
  if (depth > MOST_DEPTH) {
    report(path, `expected at most ${MOST_DEPTH} levels`);
    return [];
  }
  const descriptors = value.map((item, i) => readDescriptor(item, `${path}[${i}]`, report, depth));
  const seen = new Set<string>();
  for (const [i, { key, value: one }] of descriptors.entries()) {
    const composite = JSON.stringify([key, one]);
    if (seen.has(composite)) {
      report(`${path}[${i}]`, `duplicate descriptor ${key}${one === "" ? "" : ` with value ${JSON.stringify(one)}`}`);
    }
    seen.add(composite);
  }
  return descriptors;
}

function readDescriptor(item: unknown, path: string, report: Report, depth: number): Descriptor {
  const mapping = mappingAt(item, path, descriptorKeys, report);
  const key = textAt(mapping, "key", path, report);
  if (key === "") report(`${path}.key`, "expected a name that is not empty");
  const value = textAt(mapping, "value", path, report);
  const shareThreshold = flagAt(mapping, "share_threshold", path, report);
  if (shareThreshold && !value.includes("*")) {
    report(`${path}.share_threshold`, 'expected a value with a wildcard "*" beside it');
  }
  return {
    key,
    value,
    limit: readLimit(mapping.rate_limit, `${path}.rate_limit`, report),
    shadow: flagAt(mapping, "shadow_mode", path, report),
    quota: flagAt(mapping, "quota_mode", path, report),
    shareThreshold,
    descriptors: readList(mapping.descriptors, `${path}.descriptors`, report, depth + 1),
  };
}

function readLimit(value: unknown, path: string, report: Report): Limit | undefined {
  // Control planes write null for "none".
  if (value === undefined || value === null) return undefined;
  const mapping = mappingAt(value, path, new Set([...limitKeys, ...extraKeys.keys()]), report);
  const extra: Record<string, unknown> = {};
  for (const [written, name] of extraKeys) if (mapping[written] != null) extra[name] = mapping[written];
  const unlimited = flagAt(mapping, "unlimited", path, report);
  const name = textAt(mapping, "name", path, report);
  return {
    name: name === "" ? undefined : name,
    replaces: readReplaces(mapping.replaces, name, `${path}.replaces`, report),
    unlimited,
    requestsPerUnit: readCount(mapping.requests_per_unit, `${path}.requests_per_unit`, report),
    unit: readUnit(mapping.unit, { path: `${path}.unit`, unlimited, unitless: isUnitless(extra) }, report),
    extra,
  };
}

function isUnitless(extra: Readonly<Record<string, unknown>>): boolean {
  return extra.window !== undefined || extra.refill !== undefined || extra.algorithm === "concurrency";
}

function readUnit(
  value: unknown,
  { path, unlimited, unitless }: { path: string; unlimited: boolean; unitless: boolean },
  report: Report,
): Unit | "" {
  const given = value === undefined || value === null || value === "" ? undefined : String(value).toLowerCase();
  if (unlimited) {
    if (given !== undefined) report(path, "expected no unit beside unlimited");
    return "";
  }
  if (given === undefined && unitless) return "";
  if (given !== undefined && Object.hasOwn(unitSeconds, given)) return given as Unit;
  report(path, `expected one of ${Object.keys(unitSeconds).join(", ")}, got ${JSON.stringify(value ?? "")}`);
  return "";
}

function readReplaces(value: unknown, own: string, path: string, report: Report): string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    report(path, "expected a list");
    return [];
  }
  return value.map((item, i) => {
    const name = textAt(mappingAt(item, `${path}[${i}]`, new Set(["name"]), report), "name", `${path}[${i}]`, report);
    if (name === "") report(`${path}[${i}].name`, "expected a name that is not empty");
    else if (name === own) report(`${path}[${i}].name`, "a limit cannot replace itself");
    return name;
  });
}

function readCount(value: unknown, path: string, report: Report): number {
  if (value === undefined || value === null) return 0;
  if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= 0xffff_ffff) return value as number;
  report(path, `expected a whole number from 0 to ${0xffff_ffff}, got ${JSON.stringify(value)}`);
  return 0;
}

function mappingAt(value: unknown, path: string, known: ReadonlySet<string>, report: Report): Mapping {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    report(path, `expected names with values, got ${JSON.stringify(value)?.slice(0, 60)}`);
    return {};
  }
  for (const name of Object.keys(value))
    if (!known.has(name)) report(path === "" ? name : `${path}.${name}`, "unknown key");
  return value as Mapping;
}

function textAt(mapping: Mapping, name: string, path: string, report: Report): string {
  const value = Object.hasOwn(mapping, name) ? mapping[name] : undefined;
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  // YAML reads `value: 42` and `value: true` as such; the reference reads them as the text that was written.
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  report(path === "" ? name : `${path}.${name}`, "expected a text");
  return "";
}

function flagAt(mapping: Mapping, name: string, path: string, report: Report): boolean {
  const value = Object.hasOwn(mapping, name) ? mapping[name] : undefined;
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  report(`${path}.${name}`, `expected true or false, got ${JSON.stringify(value)}`);
  return false;
}
