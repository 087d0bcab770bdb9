/** Parses the `traceparent` header of W3C Trace Context, version 00 and compatible later ones. Pure. */
import type { SpanContext } from "@opentelemetry/api";

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

interface Parent {
  readonly context: SpanContext;
  readonly sampled: boolean;
}

/** Undefined if it is absent, repeated or invalid: the trace then starts here. */
export function parentOf(header: string | readonly string[] | undefined): Parent | undefined {
  if (typeof header !== "string" || header.length > 512) return undefined;
  const [, version, traceId, spanId, flags, rest] = FORM.exec(header.trim()) ?? [];
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const sampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { context: { traceId, spanId, traceFlags: sampled ? 1 : 0, isRemote: true }, sampled };
}
