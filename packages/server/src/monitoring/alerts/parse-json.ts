/** Reads a text of the history. One that cannot be read (another version wrote it, or a person edited it) counts as absent: it must not stop the rest. */
export function parseJson<T>(text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}
