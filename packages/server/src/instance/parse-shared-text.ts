/** Parses a shared text. One that cannot be parsed (another version wrote it, or a person edited it) counts as absent: it must not stop the rest. */
export function parseSharedText<T>(text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}
