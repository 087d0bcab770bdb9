/** Reads RateLimit fields with a Structured Fields library, so that our own spelling is not judged by our own reading. */
import { type Dictionary, parseDictionary, parseList } from "structured-headers";

export interface PolicyItem {
  readonly name: unknown;
  readonly parameters: Readonly<Record<string, unknown>>;
}

export function readList(text: string | null): PolicyItem[] {
  if (text === null) return [];
  return parseList(text).map(([name, parameters]) => ({ name, parameters: Object.fromEntries(parameters) }));
}

export function readDictionary(text: string | null): Record<string, unknown> {
  const dictionary: Dictionary = parseDictionary(text ?? "");
  return Object.fromEntries([...dictionary].map(([name, [value]]) => [name, value]));
}

/** The rate limit fields of a response, names in lower case. */
export function rateLimitHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => /^(x-)?ratelimit/.test(name) || name === "retry-after"));
}
