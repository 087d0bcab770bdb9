/**
 * A value as messages show it: JSON, cut to a length that a terminal and a log line bear. Never throws, whatever came.
 */

const LONGEST_SHOWN = 80;

export function describeValue(value: unknown): string {
  switch (typeof value) {
    case "undefined":
      return "nothing";
    case "number":
      // JSON would say null for NaN and Infinity.
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
    return JSON.stringify(value) ?? "a value that JSON cannot show";
  } catch {
    return "a value that JSON cannot show";
  }
}

function cut(text: string, isCutAlready = false): string {
  return isCutAlready || text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN - 1)}…` : text;
}
