/**
 * Attributes in the URL, `/keys?user=42`, so that a view can be shared as a link. An attribute named like a frame parameter gets a prefix,
 * `attribute:from=…`. Pure.
 */
import { frameNames } from "../time/time-address.js";

const PREFIX = "attribute:";
const isOfFrame = (name: string): boolean => (frameNames as readonly string[]).includes(name);

export function keyAddress(attributes: Readonly<Record<string, string>>): string {
  const entries = Object.entries(attributes).map(([name, value]) => [
    isOfFrame(name) || name.startsWith(PREFIX) ? PREFIX + name : name,
    value,
  ]);
  const search = new URLSearchParams(entries).toString();
  return search === "" ? "/keys" : `/keys?${search}`;
}

export interface AttributeRow {
  readonly name: string;
  readonly value: string;
}

export function rowsOf(search: string): AttributeRow[] {
  return [...new URLSearchParams(search)]
    .filter(([name]) => !isOfFrame(name))
    .map(([name, value]) => ({ name: name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name, value }));
}

/** Rows without a name or a value are skipped; of duplicates the last wins. */
export function attributesOf(rows: readonly AttributeRow[]): Record<string, string> {
  return Object.fromEntries(
    rows.filter(({ name, value }) => name.trim() !== "" && value !== "").map(({ name, value }) => [name.trim(), value]),
  );
}
