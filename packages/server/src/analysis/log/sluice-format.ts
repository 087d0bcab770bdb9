/** Sluice's own recordings (`--record`) as a log: decisions are requests, and later events on them are passed along. */
import { parseLine, type TimedLine } from "../../recording/recording-lines.js";
import type { LogFormat, LogRequest } from "./log-request.js";

export const sluiceFormat: LogFormat = {
  name: "sluice",
  reader: () => ({ text: readRecorded }),
};

function readRecorded(text: string): LogRequest | "blank" | undefined {
  if (text === "") return "blank";
  const line = parseLine(text);
  if (line === undefined) return undefined;
  return "at" in line && !("sluice" in line) ? requestOf(line) : "blank";
}

/** A peek decides nothing, and a repeated id was answered without counters. */
function requestOf(line: TimedLine): LogRequest | "blank" {
  const isDecision = "checks" in line;
  if (isDecision && (line.peek === true || line.repeated === true)) return "blank";
  return {
    atMs: line.at,
    durationMs: undefined,
    method: "",
    target: "",
    host: undefined,
    peer: undefined,
    headers: {},
    fields: [],
    // Of a request with several parts, the first is checked by Sluice's own rules, the others by Envoy's limits.
    attributes: isDecision ? (line.parts?.[0]?.attributes ?? line.attributes) : {},
    recorded: line,
  };
}

/** A recording is identified by its first line. */
export function isRecording(firstLine: string): boolean {
  const line = parseLine(firstLine);
  return line !== undefined && "sluice" in line;
}
