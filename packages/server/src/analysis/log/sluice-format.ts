/** Recordings of Sluice itself (`--record`), as a log: decisions are requests, what became of them goes along. */
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

/** A look decides nothing, and an id that came again was answered without counters. */
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
    // Of a request of several parts the first is under Sluice's own rules, the others under Envoy's limits.
    attributes: isDecision ? (line.parts?.[0]?.attributes ?? line.attributes) : {},
    recorded: line,
  };
}

/** Its first line tells a recording from every other log. */
export function isRecording(firstLine: string): boolean {
  const line = parseLine(firstLine);
  return line !== undefined && "sluice" in line;
}
