/** The indexes of the columns to read from a W3C extended log, from its `#Fields:` line. Pure. */

/** An index is -1 if the log has no such column. */
export interface Columns {
  readonly date: number;
  readonly time: number;
  readonly path: number;
  readonly query: number;
  readonly method: number;
  /** The first one present wins. */
  readonly hosts: readonly number[];
  readonly peer: number;
  readonly taken: number;
  readonly isCloudFront: boolean;
  readonly headers: readonly { readonly name: string; readonly at: number }[];
  readonly fields: readonly number[];
}

export function columnsOf(line: string, fields: readonly string[], headers: ReadonlySet<string> | undefined): Columns {
  const each = line.trim().split(/[\t ]+/);
  const places = new Map(each.map((name, at) => [name.toLowerCase(), at]));
  const at = (name: string): number => places.get(name) ?? -1;
  return {
    date: at("date"),
    time: at("time"),
    path: at("cs-uri-stem"),
    query: at("cs-uri-query"),
    method: at("cs-method"),
    hosts: [at("x-host-header"), at("cs(host)"), at("cs-host")],
    peer: at("c-ip"),
    taken: at("time-taken"),
    isCloudFront: places.has("x-edge-location"),
    headers: headersAmong(places, headers),
    fields: fields.map((name) => at(name.toLowerCase())),
  };
}

/** `cs(User-Agent)` is a header of the request. */
function headersAmong(
  places: ReadonlyMap<string, number>,
  wanted: ReadonlySet<string> | undefined,
): { name: string; at: number }[] {
  return [...places].flatMap(([column, at]) => {
    const name = /^cs\(([^)]+)\)$/.exec(column)?.[1];
    return name !== undefined && (wanted?.has(name) ?? true) ? [{ name, at }] : [];
  });
}
