/**
 * Path templates such as `/v1/users/{id}/orders`: `{id}` matches one segment, a trailing `/**` any rest. Pure.
 * Walks segments instead of using a RegExp, because paths come from attackers (ReDoS).
 */
interface PathTemplate {
  readonly text: string;
  readonly segments: readonly string[];
  readonly openEnd: boolean;
}

export function compileTemplate(text: string): PathTemplate {
  const openEnd = text.endsWith("/**");
  return { text, openEnd, segments: (openEnd ? text.slice(0, -3) : text).split("/") };
}

/** The value of the first `{…}`, "" if there is none; undefined if the path does not match. */
export function matchTemplate({ segments, openEnd }: PathTemplate, path: string): string | undefined {
  const parts = path.split("/", segments.length + 1);
  if (parts.length < segments.length || (parts.length > segments.length && !openEnd)) return undefined;
  let captured = "";
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i]!;
    if (segment.startsWith("{") && segment.endsWith("}")) {
      if (parts[i] === "") return undefined;
      captured ||= parts[i]!;
    } else if (segment !== parts[i]) return undefined;
  }
  return captured;
}
