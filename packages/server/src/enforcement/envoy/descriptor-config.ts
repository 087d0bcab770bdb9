/**
 * Parses envoyproxy/ratelimit's configuration, from YAML files or xDS resources: domains, descriptors, limits.
 * In: the text of a file, or a resource as a plain object. Out: domains, or every mistake with its path. Keys and refusals match the
 * reference implementation; `rate_limit` additionally accepts an `algorithm` with its numbers, as in rules.
 */
import { Mistakes } from "./mistakes.js";
import {
  booleanOf,
  isFloat,
  isMapping,
  isNull,
  type Mapping,
  nativeOf,
  Plain,
  readYaml,
  wholeNumberOf,
} from "./yaml-values.js";

export interface Limit {
  /** The limit's own name, which another's `replaces` may list. */
  readonly name: string | undefined;
  readonly replaces: readonly string[];
  readonly unlimited: boolean;
  readonly requestsPerUnit: number;
  /** "" if the limit has a `window` instead, or an algorithm without one. */
  readonly unit: Unit | "";
  /** Whether `is_negative_hits` may give hits back to this limit. */
  readonly negativeHits: boolean;
  /** Whether refused hits are counted too; absent: only those that a descriptor carries are. */
  readonly countRefused: boolean | undefined;
  /** Sluice extensions (algorithm, window and other numbers), under their names in rules. */
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface Descriptor {
  readonly key: string;
  /** "" matches every value. */
  readonly value: string;
  readonly limit: Limit | undefined;
  readonly shadow: boolean;
  readonly quota: boolean;
  /** One counter shared by all values that match the wildcard. */
  readonly shareThreshold: boolean;
  /** Whether metrics under the reference's names include request values: for every level, or for this one. */
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  /** Forwarded in the dynamic metadata of responses. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  readonly descriptors: readonly Descriptor[];
}

export interface Domain {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
}

export type Unit = "second" | "minute" | "hour" | "day" | "week" | "month" | "year";

/** In seconds. As in the reference implementation, a month has 30 days, a year has 365, and windows are aligned to the epoch. */
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
const limitKeys = new Set([
  "unit",
  "requests_per_unit",
  "unlimited",
  "name",
  "replaces",
  "negative_hits",
  "count_refused",
]);
/** Extra numbers: their spelling in this file, and in rules. */
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

type Report = (path: string, message: string) => void;

type Outcome = { domains: Domain[] } | { mistakes: string[] };

/** Each document of a file is a domain. */
export function parseDomains(text: string): Outcome {
  const yaml = readYaml(text);
  if ("mistakes" in yaml) return yaml;
  const several = yaml.documents.length > 1;
  return readAll(yaml.documents.map((content, i) => ({ content, at: several ? `document ${i + 1}: ` : "" })));
}

/** Reads a control plane's resources, each under its name. */
export function readResources(resources: readonly { name: string; content: unknown }[]): Outcome {
  return readAll(resources.map(({ name, content }) => ({ content, at: `${JSON.stringify(name)}: ` })));
}

function readAll(contents: readonly { content: unknown; at: string }[]): Outcome {
  const mistakes = new Mistakes();
  const domains = contents.map(({ content, at }) => {
    const report: Report = (path, message) => mistakes.add(at + (path === "" ? message : `${path}: ${message}`));
    return readRoot(content, report);
  });
  return mistakes.some ? { mistakes: mistakes.list() } : { domains };
}

function readRoot(content: unknown, report: Report): Domain {
  const root = mappingAt(content, "", rootKeys, report);
  const domain = textAt(root, "domain", "", report);
  if (domain === "") report("domain", "expected a name that is not empty");
  return { domain, descriptors: readList(root.descriptors, "descriptors", report, 1) };
}

function readList(value: unknown, path: string, report: Report, depth: number): Descriptor[] {
  if (isNull(value)) return [];
  if (!Array.isArray(value)) {
    report(path, "expected a list of descriptors");
    return [];
  }
  if (depth > MOST_DEPTH) {
    report(path, `expected at most ${MOST_DEPTH} levels`);
    return [];
  }
  const descriptors = value.map((item, i) => readDescriptor(item, `${path}[${i}]`, report, depth));
  for (const { at, message } of duplicatesIn(descriptors)) report(`${path}[${at}]`, message);
  return descriptors;
}

/** `seen`: earlier descriptors of the same list; the new ones are added to it. */
export function duplicatesIn(
  descriptors: readonly Descriptor[],
  seen = new Set<string>(),
): { at: number; message: string }[] {
  return descriptors.flatMap(({ key, value }, at) => {
    const composite = JSON.stringify([key, value]);
    if (seen.has(composite)) {
      const message = `duplicate descriptor ${key}${value === "" ? "" : ` with value ${JSON.stringify(value)}`}`;
      return [{ at, message }];
    }
    seen.add(composite);
    return [];
  });
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
    detailedMetric: flagAt(mapping, "detailed_metric", path, report),
    valueToMetric: flagAt(mapping, "value_to_metric", path, report),
    metadata: readMetadata(mapping.metadata, `${path}.metadata`, report),
    descriptors: readList(mapping.descriptors, `${path}.descriptors`, report, depth + 1),
  };
}

function readMetadata(value: unknown, path: string, report: Report): Descriptor["metadata"] {
  if (isNull(value)) return undefined;
  if (isMapping(value)) return nativeOf(value) as Record<string, unknown>;
  report(path, "expected names with values");
  return undefined;
}

function readLimit(value: unknown, path: string, report: Report): Limit | undefined {
  // Control planes emit null for "none".
  if (isNull(value)) return undefined;
  const mapping = mappingAt(value, path, new Set([...limitKeys, ...extraKeys.keys()]), report);
  const extra: Record<string, unknown> = {};
  for (const [written, name] of extraKeys) {
    if (!isNull(mapping[written])) extra[name] = nativeOf(mapping[written]);
  }
  const unlimited = flagAt(mapping, "unlimited", path, report);
  const name = textAt(mapping, "name", path, report);
  return {
    name: name === "" ? undefined : name,
    replaces: readReplaces(mapping.replaces, name, `${path}.replaces`, report),
    unlimited,
    negativeHits: flagAt(mapping, "negative_hits", path, report),
    countRefused: isNull(mapping.count_refused) ? undefined : flagAt(mapping, "count_refused", path, report),
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
  const text = value instanceof Plain ? value.text : String(value);
  const given = isNull(value) || text === "" ? undefined : text.toLowerCase();
  if (unlimited) {
    if (given !== undefined) report(path, "expected no unit beside unlimited");
    return "";
  }
  if (given === undefined && unitless) return "";
  if (given !== undefined && Object.hasOwn(unitSeconds, given)) return given as Unit;
  report(
    path,
    `expected one of ${Object.keys(unitSeconds).join(", ")}, got ${JSON.stringify(given === undefined ? "" : text)}`,
  );
  return "";
}

function readReplaces(value: unknown, own: string, path: string, report: Report): string[] {
  if (isNull(value)) return [];
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
  if (isNull(value)) return 0;
  const count = wholeNumberOf(value);
  if (count !== undefined && count >= 0 && count <= 0xffff_ffff) return count;
  report(path, `expected a whole number from 0 to ${0xffff_ffff}, got ${spelled(value)}`);
  return 0;
}

function mappingAt(value: unknown, path: string, known: ReadonlySet<string>, report: Report): Mapping {
  if (!isMapping(value)) {
    report(path, `expected names with values, got ${isNull(value) ? "nothing" : spelled(value)}`);
    return {};
  }
  for (const name of Object.keys(value))
    if (!known.has(name)) report(path === "" ? name : `${path}.${name}`, "unknown key");
  return value;
}

/** As in the reference, a number or boolean is read as its source text; a number with a fraction is refused there and here. */
function textAt(mapping: Mapping, name: string, path: string, report: Report): string {
  const value = mapping[name];
  if (isNull(value)) return "";
  if (typeof value === "string") return value;
  if (value instanceof Plain && !isFloat(value)) return value.text;
  report(
    path === "" ? name : `${path}.${name}`,
    `expected a text (in quotes, if it looks like a number), got ${spelled(value)}`,
  );
  return "";
}

function flagAt(mapping: Mapping, name: string, path: string, report: Report): boolean {
  const value = mapping[name];
  if (isNull(value)) return false;
  const flag = booleanOf(value);
  if (flag === undefined) report(`${path}.${name}`, `expected true or false, got ${spelled(value)}`);
  return flag ?? false;
}

/** For messages: the source text, truncated. */
function spelled(value: unknown): string {
  const text = value instanceof Plain ? value.text : (JSON.stringify(nativeOf(value)) ?? "nothing");
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}
