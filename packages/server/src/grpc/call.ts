/**
 * The parts of a call that handlers see: the subset of grpc-js's interface that our handlers use, so that either transport can serve them.
 */
import type { Connection } from "./http2/connection.js";
import type { ReadField } from "./http2/header-field.js";
import type { RequestHead } from "./http2/request-head.js";
import type { Stream } from "./http2/stream.js";
import type { MessageBudget, Peer } from "./message-budget.js";
import type { GrpcStatus } from "./statuses.js";

/** A method with its handler. Compatible with grpc-js's service definitions. */
export interface Method {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  requestDeserialize(bytes: Buffer): unknown;
  responseSerialize(value: never): Buffer;
  readonly handler: Handler;
}

export type Done = (error: Partial<GrpcStatus> | null, value?: unknown) => void;
/** Unary handlers call `done`; streaming ones write to the call. */
export type Handler = (call: never, done: Done) => void;

/** The connection that a call arrived on. */
export interface Caller {
  readonly connection: Connection;
  readonly budget: MessageBudget;
  readonly peer: Peer;
  /** In grpc-js's format: `127.0.0.1:4711`. */
  readonly name: string;
  /** Subject alternative names of the client certificate, if the client presented one. */
  readonly certificateNames: () => string | undefined;
  readonly mostMessageBytes: number;
  /** Reports an internal error. */
  readonly onFailure: (error: unknown) => void;
}

export interface CallOptions {
  readonly stream: Stream;
  readonly head: RequestHead;
  readonly method: Method;
  readonly caller: Caller;
}

/** Only headers that are read somewhere are kept. */
export function metadataOf(head: RequestHead): { get(name: string): string[] } {
  return {
    get(name) {
      const value = head.get(name as ReadField);
      return value === undefined ? [] : [value];
    },
  };
}

const unitsMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** `grpc-timeout` in milliseconds; undefined if absent or malformed. */
export function timeoutMsOf(head: RequestHead): number | undefined {
  const text = head.get("grpc-timeout");
  if (text === undefined || !/^\d{1,8}[HMSmun]$/.test(text)) return undefined;
  return Number(text.slice(0, -1)) * unitsMs[text.at(-1)!]!;
}
