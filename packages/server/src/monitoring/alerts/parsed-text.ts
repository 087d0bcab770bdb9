/** A text of the history, read back. One that cannot be read (another version wrote it, somebody edited it) counts as absent: it must not stop the rest. */
export function parsedText<T>(text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}
