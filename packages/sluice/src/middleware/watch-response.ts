/**
 * Observes what a handler writes to Node's response: its header fields, and its bytes as the handler passes them. Node neither keeps fields
 * that are only given to `writeHead`, nor counts a body's bytes, so three methods are wrapped.
 */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";

export type HeaderOf = (name: string) => string | undefined;

/** Reads a header field by its lower-case name, whichever way it was set. */
export function watchHead(response: ServerResponse): HeaderOf {
  const written = new Map<string, string>();
  const { writeHead } = response;
  response.writeHead = function (this: ServerResponse, ...args: unknown[]) {
    for (const [name, value] of fieldsIn(args.at(-1))) written.set(name.toLowerCase(), String(value));
    return Reflect.apply(writeHead, this, args) as ServerResponse;
  } as ServerResponse["writeHead"];
  return (name) => written.get(name) ?? textOf(response.getHeader(name));
}

/** The forms that `writeHead` accepts: an object, a list of names and values, or a list of pairs. */
function fieldsIn(given: unknown): [string, unknown][] {
  if (typeof given !== "object" || given === null) return [];
  if (!Array.isArray(given)) return Object.entries(given as OutgoingHttpHeaders);
  if (Array.isArray(given[0])) return given as [string, unknown][];
  return given.flatMap((name, i) => (i % 2 === 0 ? [[String(name), given[i + 1]] as [string, unknown]] : []));
}

function textOf(value: number | string | readonly string[] | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}

/** Calls back for every piece of the body. */
export function watchBody(response: ServerResponse, onChunk: (chunk: Uint8Array) => void): void {
  const { write, end } = response;
  // HTTP/2's `end` calls `write` itself.
  let isEnding = false;
  const see = (chunk: unknown, encoding: unknown): void => {
    if (isEnding) return;
    if (typeof chunk === "string") {
      const coding = typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8";
      onChunk(Buffer.from(chunk, coding));
    } else if (chunk instanceof Uint8Array) onChunk(chunk);
  };
  response.write = function (this: ServerResponse, ...args: unknown[]) {
    see(args[0], args[1]);
    return Reflect.apply(write, this, args) as boolean;
  } as ServerResponse["write"];
  response.end = function (this: ServerResponse, ...args: unknown[]) {
    see(args[0], args[1]);
    isEnding = true;
    return Reflect.apply(end, this, args) as ServerResponse;
  } as ServerResponse["end"];
}
