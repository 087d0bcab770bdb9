/**
 * Path templates: `/v1/users/{id}/orders`, where `{id}` stands for one segment, and a last `/**` for any rest. Pure.
 * A walk over segments, no RegExp: paths come from attackers.
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

/** The value at the first `{…}`, "" if there is none; undefined if the path does not match. */
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
