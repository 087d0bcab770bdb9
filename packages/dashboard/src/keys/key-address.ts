/** Attributes in an address, `/keys?user=42`: so that a view can be shared as a link. Pure. */

export function keyAddress(attributes: Readonly<Record<string, string>>): string {
  const search = new URLSearchParams(attributes).toString();
  return search === "" ? "/keys" : `/keys?${search}`;
}

export interface AttributeRow {
  readonly name: string;
  readonly value: string;
}

export function rowsOf(search: string): AttributeRow[] {
  return [...new URLSearchParams(search)].map(([name, value]) => ({ name, value }));
}

/** Rows without a name or a value are left out; of two with one name the last counts. */
export function attributesOf(rows: readonly AttributeRow[]): Record<string, string> {
  return Object.fromEntries(
    rows.filter(({ name, value }) => name.trim() !== "" && value !== "").map(({ name, value }) => [name.trim(), value]),
  );
}
