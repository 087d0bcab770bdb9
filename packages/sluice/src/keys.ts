/**
 * The only file that builds keys. A counter's key is
 *
 *   sluice:1:{user=42}:per-user:z
 *   |      | |         |        └ what is stored (see `storedAs`); in capitals, a candidate's counter
 *   |      | |         └ rule id (then the counted key, if the tag is a colocation attribute)
 *   |      | └ hash tag: rules that count by the same attributes share a Redis Cluster slot, and so one script
 *   |      └ layout version: a new layout never reads an old one's bytes
 *   └ preceded by the store's own `prefix`, if it has one: so several products can share a Redis
 *
 * **When a layout changes.** Bytes that another version of Sluice would read differently get another name: a counter's new form gets a new
 * letter, a record's a new RECORD_LAYOUT, and only a change of the names themselves a new layout version here. So during a rolling upgrade,
 * old and new instances never misread each other, and what is stored under the old name expires by itself. Bytes may be appended under the
 * old name if all readers ignore them and the counter errs on the strict side without them: what was given back to a bucket
 * (token-bucket.lua; in its record too, id-record.lua) and by how much it is refilled; which settlement settled a hold (hold.lua); which
 * counters a place is about (place.lua). One change kept its letter: the debt flag of a packed log, which an older version reads as a full
 * log and refuses, as the debt would. `test/redis/layouts.test.ts` pins the bytes of counters, of prefetched units and of records,
 * `layouts-beside-counters.test.ts` those of everything else that is stored beside counters or shared, `test/conformance/cluster.test.ts`
 * those of a place.
 *
 * Values may contain any bytes: what could be mistaken for syntax is escaped, so no two keys collide. Pure.
 */
import { createHash } from "node:crypto";

export const KEY_PREFIX = "sluice:1:";

/** One letter per stored form. A rule whose stored form changes starts over; a rule whose numbers change keeps its counters. */
export const storedAs = {
  "token-bucket": "b",
  gcra: "g",
  "fixed-window": "f",
  "sliding-counter": "s",
  "rolling-window": "z",
  "rolling-window-packed": "p",
  concurrency: "c",
  pool: "u",
} as const;

export type Stored = keyof typeof storedAs;

/** Not the letter of any stored form. */
const BLOCK_LETTER = "x";

/** If longer, the values are replaced by their SHA-256: a 10 KB value must not cost 10 KB per counter. */
const LONGEST_TAG = 120;

/** The most counters whose keys the id of a lease or reservation can list. */
export const MOST_NAMED = 64;
/** Bounds what a forged id can make us parse. Room for the longest keys: twice 120 characters of up to three bytes, and a rule's id. */
export const LONGEST_NAMING_ID = MOST_NAMED * 1_536;

// "{" and "}" delimit the hash tag; "=", "&", "%", ":" and "#" are our own syntax. Control characters are escaped so that keys can be read
// in a terminal. Surrogates are checked: a lone one has no UTF-8 form, so clients would send U+FFFD for each of them, and different values
// would collide.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what is looked for.
const SUSPECT = /[%{}=&:#*\u0000-\u001f\u007f\ud800-\udfff]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const ESCAPED = /[%{}=&:#*\u0000-\u001f\u007f]/g;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function escapeKeyPart(part: string): string {
  if (!SUSPECT.test(part)) return part;
  return part
    .replace(ESCAPED, (character) => `%${character.charCodeAt(0).toString(16).padStart(2, "0")}`)
    .replace(LONE_SURROGATE, (unit) => `%u${unit.charCodeAt(0).toString(16)}`);
}

/** `user=42&path=%2fx`: names and values in the order of the rule's `key`; `*` for a rule with one counter for everything. */
export function spellValues(names: readonly string[], values: readonly string[]): string {
  return spellEscaped(names.map(escapeKeyPart), values);
}

/** The same for names already passed through `escapeKeyPart`: a rule's names are escaped once, not at every check. */
export function spellEscaped(escapedNames: readonly string[], values: readonly string[]): string {
  if (escapedNames.length === 0) return "*";
  let spelled = `${escapedNames[0]!}=${escapeKeyPart(values[0]!)}`;
  for (let i = 1; i < escapedNames.length; i++) spelled += `&${escapedNames[i]!}=${escapeKeyPart(values[i]!)}`;
  return spelled.length <= LONGEST_TAG ? spelled : `#${createHash("sha256").update(spelled).digest("base64url")}`;
}

/** The end of the keys of all counters of a rule in one stored form: made once per rule, not at every check. */
export function counterKeyEnd(counter: { rule: string; stored: Stored; candidate: boolean }): string {
  const letter = storedAs[counter.stored];
  return `}:${counter.rule}:${counter.candidate ? letter.toUpperCase() : letter}`;
}

/** The same for the blocks of a rule, which are stored beside its counters under a separate letter. */
export function blockKeyEnd({ rule, candidate }: { rule: string; candidate: boolean }): string {
  return `}:${rule}:${candidate ? BLOCK_LETTER.toUpperCase() : BLOCK_LETTER}`;
}

/** The key of a counter, without the prefix. `spelled`: from `spellValues`; `end`: from `counterKeyEnd`. */
export function counterKey(spelled: string, end: string): string {
  return `{${spelled}${end}`;
}

/** The same for a rule with a colocation attribute: its value is the tag, and the counted key moves behind the rule. */
export function colocatedKey(colocated: string, spelled: string, end: string): string {
  const letterAt = end.lastIndexOf(":");
  return `{${colocated}${end.slice(0, letterAt)}:${spelled}${end.slice(letterAt)}`;
}

/** The region's pool for a counter in the global store. */
export function poolKey(counter: string): string {
  const letter = counter.slice(-1);
  return counter.slice(0, -1) + (letter === letter.toLowerCase() ? storedAs.pool : storedAs.pool.toUpperCase());
}

/** Beside a counter: the units that holders have prefetched from it (grants.lua). */
export function grantsKey(counter: string): string {
  return `${counter}~`;
}

const TURNS_LETTER = "^";

/** Beside a counter: turns that were given back (turns.lua). */
export function turnsKey(counter: string): string {
  return counter + TURNS_LETTER;
}

export function isTurnsKey(key: string): boolean {
  return key.endsWith(TURNS_LETTER);
}

const formOf = new Map(Object.entries(storedAs).map(([stored, letter]) => [letter, stored as Stored]));

/** The stored form of a counter, from its key; undefined for a block. */
export function storedIn(key: string): Stored | undefined {
  return formOf.get(key.slice(-1).toLowerCase() as (typeof storedAs)[Stored]);
}

/** The letter of a counter's stored form, or of its vacant turns; empty for other keys stored beside a counter. */
export function letterOf(key: string): string {
  if (isTurnsKey(key)) return TURNS_LETTER;
  const letter = /:([a-z])$/i.exec(key)?.[1]?.toLowerCase() ?? "";
  return formOf.has(letter as (typeof storedAs)[Stored]) ? letter : "";
}

/** Matches the keys of blocks, without those of candidates: a pattern for SCAN, and a predicate. `prefix`: the store's own. */
export function blockKeysPattern(prefix: string): string {
  return `${prefix}${KEY_PREFIX}{*}:*:${BLOCK_LETTER}`;
}

export function isBlockKey(key: string): boolean {
  return key.endsWith(`:${BLOCK_LETTER}`);
}

/**
 * Which rule a key in Redis counts for, and whether for its candidate; undefined if it is not a counter of this layout, or belongs to a
 * store with another `prefix`.
 */
export function ruleOfKey(key: string, prefix = ""): { rule: string; candidate: boolean } | undefined {
  if (!key.startsWith(`${prefix}${KEY_PREFIX}{`)) return undefined;
  // Braces in values are escaped, so the first one closes the tag.
  const [between, rule, ...rest] = key.slice(key.indexOf("}") + 1).split(":");
  const letter = rest.at(-1);
  if (between !== "" || rule === undefined || letter === undefined || letter.toLowerCase() === BLOCK_LETTER)
    return undefined;
  return { rule, candidate: letter !== letter.toLowerCase() };
}

/**
 * The rule and the key attributes that a counter's key (without the prefix) was built from. Attributes are undefined if they were so long
 * that the key only contains their digest.
 */
export function readCounterKey(key: string): { rule: string; attributes: Record<string, string> | undefined } {
  const [rule] = partsBehindTag(key);
  const spelled = spelledIn(key);
  if (spelled === "*") return { rule, attributes: {} };
  if (spelled.startsWith("#")) return { rule, attributes: undefined };
  const pairs = spelled.split("&").map((pair) => {
    const at = pair.indexOf("=");
    return [unescapeKeyPart(pair.slice(0, at)), unescapeKeyPart(pair.slice(at + 1))] as const;
  });
  return { rule, attributes: Object.fromEntries(pairs) };
}

/** The key's values in a counter's key, as `spellValues` returned them. */
export function spelledIn(key: string): string {
  const [, ...rest] = partsBehindTag(key);
  return rest.length > 1 ? rest[0]! : hashTag(key);
}

function partsBehindTag(key: string): [rule: string, ...rest: string[]] {
  return key.slice(key.indexOf("}") + 2).split(":") as [string, ...string[]];
}

function unescapeKeyPart(part: string): string {
  return part.replace(/%(?:u([0-9a-f]{4})|([0-9a-f]{2}))/g, (_, unit?: string, character?: string) =>
    String.fromCharCode(Number.parseInt(unit ?? character!, 16)),
  );
}

/** The text between the braces of a counter's key: keys with equal tags share a slot. */
export function hashTag(key: string): string {
  return key.slice(1, key.indexOf("}"));
}

/**
 * The layout of request-id records (id-record.lua), part of their keys: instances with different layouts never read each other's records.
 * Layout 1 had no number in its key; an escaped id contains no "=", so the two cannot collide. Layout 2 had no tombstones.
 */
const RECORD_LAYOUT = 3;

/**
 * The record that makes a repeated request id return the same decision. It is stored beside its counters; it has a "!" where a counter has
 * its ":", so no rule can be named like it.
 */
export function requestIdKey(id: string, tag: string): string {
  return `{${tag}}!${RECORD_LAYOUT}=${spellId(id)}`;
}

/** On a cluster: stored under the id alone, what it was sent for and which tags its records have. */
export function requestPlaceKey(id: string): string {
  return `{!${RECORD_LAYOUT}=${spellId(id)}}`;
}

/** Marks that the charges of a request without an id, under this tag, were undone. */
export function undoneKey(mark: string, tag: string): string {
  return `{${tag}}!u=${mark}`;
}

/** The layout of holds (hold.lua), part of their keys. */
const HOLD_LAYOUT = 2;

/** What a reservation holds, stored beside the counters in which it holds units. */
export function holdKey(entryId: string, tag: string): string {
  return `{${tag}}!h${HOLD_LAYOUT}=${entryId}`;
}

/** What requests of a class really cost (learn.lua). `name`: of a rule and a class, so no client chooses it. */
export function learnedKey(name: string): string {
  return `{~${name}}costs`;
}

/** Counts the instances that share a store. Neither a counter nor a record continues like this after its tag. */
export const INSTANCES_KEY = "{~}instances";

/** Counts the regions that share a global store. */
export const REGIONS_KEY = "{~}regions";

/** Utilisation reports shared by the instances of a store. */
export const UTILISATION_KEY = "{~}utilisation";

/** The limits of adaptive rules, shared by the instances of a store. */
export const LIMITS_KEY = "{~}limits";

/** Counters that recently got room again: instances that have cached a refusal of theirs drop it. */
export const FREED_KEY = "{~}freed";

function spellId(id: string): string {
  if (id.length <= LONGEST_TAG) return escapeKeyPart(id);
  // In UTF-8 all lone surrogates are the same.
  const encoding = id.search(LONE_SURROGATE) < 0 ? "utf8" : "utf16le";
  return `#${createHash("sha256").update(id, encoding).digest("base64url")}`;
}
