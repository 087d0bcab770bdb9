/**
 * Values with `*`, which stands for any characters, none included. The value comes from a client, and a level may have thousands of
 * wildcards: ends are compared first, and what is between them is searched for by the engine, not character by character. Pure.
 */

/** Whether a value fits the pattern. */
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
    // The first place of each part is the best: it leaves the most for the others.
    for (const part of between) {
      const found = value.indexOf(part, at);
      if (found === -1 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  };
}
