/**
 * Parses a shared text. An unparsable one (written by another version, or edited by hand) counts as absent, so that it cannot break the
 * rest.
 */
export function parseSharedText<T>(text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}
