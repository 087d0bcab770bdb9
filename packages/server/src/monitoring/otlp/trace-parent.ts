/** The header `traceparent` of W3C Trace Context, version 00 and later ones that begin like it. Pure. */
import type { SpanContext } from "@opentelemetry/api";

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

interface Parent {
  readonly context: SpanContext;
  readonly sampled: boolean;
}

/** Undefined for none, several, or one that is not valid: the trace then begins here. */
export function parentOf(header: string | readonly string[] | undefined): Parent | undefined {
  if (typeof header !== "string" || header.length > 512) return undefined;
  const [, version, traceId, spanId, flags, rest] = FORM.exec(header.trim()) ?? [];
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const sampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { context: { traceId, spanId, traceFlags: sampled ? 1 : 0, isRemote: true }, sampled };
}
