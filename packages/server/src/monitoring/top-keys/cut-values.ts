/** Truncates attribute values for tables and logs: they may be personal data, and of any length. A truncated value ends in an ellipsis. */

/** For keys in tables: enough for whole user agents and typical URLs. */
const LONGEST_KEY_VALUE = 256;

export function cutValue(value: unknown, longest: number): string {
  const text = String(value);
  return text.length <= longest ? text : `${text.slice(0, longest)}…`;
}

export function cutKey(
  names: readonly string[],
  attributes: Readonly<Record<string, unknown>>,
): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => [cutValue(name, LONGEST_KEY_VALUE), cutValue(attributes[name], LONGEST_KEY_VALUE)]),
  );
}

/** Whether a value was truncated, so that the attributes no longer identify the key. */
export function isCut(attributes: Readonly<Record<string, string>>): boolean {
  return Object.entries(attributes).some((pair) => pair.some((text) => text.length > LONGEST_KEY_VALUE));
}
