/**
 * Matches values with `*`, which stands for any characters, including none. Values come from clients, and a level may have thousands of
 * wildcards: prefix and suffix are compared first, and the parts in between are found with `indexOf`, not character by character. Pure.
 */

export type Wildcard = (value: string) => boolean;

export function wildcardOf(pattern: string): Wildcard {
  const parts = pattern.split("*");
  const prefix = parts[0]!;
  const suffix = parts.at(-1)!;
  const between = parts.slice(1, -1).filter((part) => part !== "");
  const leastLength = parts.reduce((sum, part) => sum + part.length, 0);
  return (value) => {
    if (value.length < leastLength || !value.startsWith(prefix) || !value.endsWith(suffix)) return false;
    const end = value.length - suffix.length;
    let at = prefix.length;
    // The first occurrence of each part is optimal: it leaves the most room for the rest.
    for (const part of between) {
      const found = value.indexOf(part, at);
      if (found === -1 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  };
}
