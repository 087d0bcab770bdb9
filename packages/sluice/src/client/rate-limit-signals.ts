/**
 * Reads what a response reports about limits: Retry-After, and RateLimit in every version in use. In: the response's headers. Out: times to
 * wait in ms, and quotas. Pure. Unreadable values count as absent: a client must work with servers that get these fields wrong.
 */

/** One policy, as far as the server describes it. */
export interface QuotaSignal {
  /** The policy's name; "" if the format has none. */
  readonly name: string;
  readonly quota?: number;
  readonly windowMs?: number;
  readonly remaining?: number;
  /** Counted from the response. */
  readonly resetAfterMs?: number;
}

/** More than a server can mean: 10 years. */
const LONGEST_MS = 3650 * 86_400_000;
/** More seconds than this are a time since 1970, which some servers send in X-RateLimit-Reset. */
const EPOCH_FROM_SECONDS = 1_000_000_000;
/** More than this is such a time in milliseconds, as Upstash and OpenRouter send it: in seconds it would be the year 5138. */
const EPOCH_MS_FROM = 100_000_000_000;

/** RFC 9110, section 10.2.3: seconds, or a date. */
export function readRetryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const text = headers.get("retry-after")?.trim();
  if (!text) return undefined;
  if (/^\d+$/.test(text)) return bounded(Number(text) * 1000);
  // Date.parse reads "-5" as a year: only text that starts with a weekday is an HTTP date.
  const dateMs = /^[A-Za-z]+, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : bounded(Math.max(0, dateMs - nowMs));
}

/** The policies in a response, merged from RateLimit and RateLimit-Policy. */
export function readQuotas(headers: Headers, nowMs: number): QuotaSignal[] {
  const state = headers.get("ratelimit");
  const policy = headers.get("ratelimit-policy") ?? "";
  if (state === null || state.trim().startsWith('"')) return fromDraft11(policy, state ?? "", headers, nowMs);
  return fromDraft7(policy, state);
}

/** From draft 8 on: `"name";q=100;w=60` and `"name";r=50;t=30`. */
function fromDraft11(policy: string, state: string, headers: Headers, nowMs: number): QuotaSignal[] {
  const byName = new Map<string, QuotaSignal>();
  for (const { name, parameters } of items(policy)) {
    byName.set(name, { name, ...numbered("quota", parameters.q), ...timed("windowMs", parameters.w) });
  }
  for (const { name, parameters } of items(state)) {
    const told = { ...numbered("remaining", parameters.r), ...timed("resetAfterMs", parameters.t) };
    byName.set(name, { ...byName.get(name), name, ...told });
  }
  return byName.size > 0 ? [...byName.values()] : fromSingleFields(headers, nowMs);
}

/** Draft 7: `limit=100, remaining=50, reset=30` and `100;w=60`. */
function fromDraft7(policy: string, state: string): QuotaSignal[] {
  const told = Object.fromEntries(state.split(",").map((pair) => pair.trim().split("=", 2) as [string, string?]));
  const quota = numbered("quota", told.limit);
  const times = { ...numbered("remaining", told.remaining), ...timed("resetAfterMs", told.reset) };
  return [{ name: "", ...quota, ...timed("windowMs", windowOf(policy, told.limit)), ...times }];
}

/** Draft 6 and `X-RateLimit-*`. */
function fromSingleFields(headers: Headers, nowMs: number): QuotaSignal[] {
  const read = (field: string): string | undefined =>
    headers.get(`ratelimit-${field}`) ?? headers.get(`x-ratelimit-${field}`) ?? undefined;
  const remaining = read("remaining");
  if (remaining === undefined) return [];
  const limit = read("limit");
  const reset = read("reset");
  const isEpoch = reset !== undefined && Number(reset) >= EPOCH_FROM_SECONDS;
  const resetAfterMs = isEpoch
    ? { resetAfterMs: bounded(Math.max(0, Number(reset) * (Number(reset) >= EPOCH_MS_FROM ? 1 : 1000) - nowMs)) }
    : timed("resetAfterMs", reset);
  const window = timed("windowMs", windowOf(headers.get("ratelimit-policy") ?? "", limit));
  return [{ name: "", ...numbered("quota", limit), ...window, ...numbered("remaining", remaining), ...resetAfterMs }];
}

/** The window of the policy with this limit: `10;w=1, 100;w=60`. */
function windowOf(policy: string, limit: string | undefined): string | undefined {
  const wanted = policy.split(",").find((item) => item.split(";")[0]!.trim() === limit?.trim());
  return wanted === undefined ? undefined : /;\s*w=(\d+)/.exec(wanted)?.[1];
}

interface Item {
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** The strings of a Structured Fields list with their plain parameters (RFC 9651, section 3.1); strings may contain commas. */
function items(text: string): Item[] {
  const found: Item[] = [];
  for (const [, name, tail] of text.matchAll(/"((?:[^"\\]|\\["\\])*)"((?:\s*;[^",]*(?:"(?:[^"\\]|\\["\\])*")?)*)/g)) {
    const parameters: Record<string, string> = {};
    for (const [, key, value] of tail!.matchAll(/;\s*([a-z*][a-z0-9_\-.*]*)=([^;\s,]+)/g)) parameters[key!] = value!;
    found.push({ name: name!.replaceAll(/\\(["\\])/g, "$1"), parameters });
  }
  return found;
}

function numbered<N extends string>(name: N, text: string | undefined): { [K in N]?: number } {
  return text !== undefined && /^\s*\d{1,15}\s*$/.test(text) ? ({ [name]: Number(text) } as { [K in N]?: number }) : {};
}

function timed<N extends string>(name: N, seconds: string | undefined): { [K in N]?: number } {
  const read = numbered("seconds", seconds).seconds;
  return read === undefined ? {} : ({ [name]: bounded(read * 1000) } as { [K in N]?: number });
}

function bounded(ms: number): number {
  return Math.min(ms, LONGEST_MS);
}
