/**
 * Dynamic metadata of a response, in envoyproxy/ratelimit's format: the domain, the descriptors, and the configured metadata of those that
 * passed. Plus the lease, if the request holds a place: Envoy releases the place with it.
 */
import { type RateLimitDescriptor, type RateLimitRequest, unitNames } from "./rate-limit-messages.js";
import type { Asked } from "./should-rate-limit.js";

type Fields = Record<string, unknown>;

export function metadataOf(request: RateLimitRequest, asked: readonly Asked[]): Fields {
  const passed = asked.flatMap(({ limit, check }) =>
    limit?.kind === "placed" && limit.placed.metadata !== undefined && check?.allowed !== false
      ? [limit.placed.metadata]
      : [],
  );
  const merged: Fields = {};
  for (const metadata of passed) merge(merged, metadata);
  return {
    domain: request.domain,
    descriptors: request.descriptors.map(describe),
    ...(request.hitsAddend > 0 && { hitsAddend: request.hitsAddend }),
    ...(Object.keys(merged).length > 0 && { metadata: merged }),
  };
}

function describe({ entries, limit, hitsAddend }: RateLimitDescriptor): Fields {
  return {
    entries: entries.map(({ key, value }) => `${key}=${value}`),
    ...(limit != null && { limit: `requests_per_unit:${limit.requestsPerUnit} unit:${unitNames[limit.unit]}` }),
    ...(hitsAddend != null && { hitsAddend: Number(String(hitsAddend.value)) }),
  };
}

/** Existing values win; mappings are merged recursively. */
function merge(into: Fields, from: Readonly<Fields>): void {
  for (const [name, value] of Object.entries(from)) {
    const there = Object.hasOwn(into, name) ? into[name] : undefined;
    if (there === undefined)
      Object.defineProperty(into, name, { value: copyOf(value), enumerable: true, writable: true });
    else if (isFields(there) && isFields(value)) merge(there, value);
  }
}

function copyOf(value: unknown): unknown {
  return isFields(value) ? structuredClone(value) : value;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
