/**
 * A value as messages show it: JSON, truncated to a length that suits a terminal or a log line. Never throws, whatever the value.
 */

const LONGEST_SHOWN = 80;

export function describeValue(value: unknown): string {
  switch (typeof value) {
    case "undefined":
      return "nothing";
    case "number":
      // JSON would show null for NaN and Infinity.
      return String(value);
    case "bigint":
      return cut(`${value}n`);
    case "symbol":
    case "function":
      return `a ${typeof value}`;
    case "string":
      return cut(JSON.stringify(value.slice(0, LONGEST_SHOWN)), value.length > LONGEST_SHOWN);
    default:
      return cut(jsonOf(value));
  }
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(shortened(value, { nodes: LONGEST_SHOWN })) ?? "a value that JSON cannot show";
  } catch {
    return "a value that JSON cannot show";
  }
}

/** Only as much as can be shown, each part at least one character: a value may be megabytes long, or nested a million levels deep. */
function shortened(value: unknown, left: { nodes: number }): unknown {
  left.nodes--;
  if (typeof value === "string") return value.slice(0, LONGEST_SHOWN + 1);
  if (typeof value !== "object" || value === null || "toJSON" in value) return value;
  const shown: Record<string, unknown> = Object.create(null);
  const items: unknown[] = [];
  const isList = Array.isArray(value);
  for (const name in value) {
    if (left.nodes < 0) break;
    const part = shortened((value as Record<string, unknown>)[name], left);
    if (isList) items.push(part);
    else if (part !== undefined) shown[name.slice(0, LONGEST_SHOWN + 1)] = part;
  }
  return isList ? items : shown;
}

function cut(text: string, isCutAlready = false): string {
  return isCutAlready || text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN - 1)}…` : text;
}
