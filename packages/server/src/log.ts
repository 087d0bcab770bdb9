/**
 * The service's log: one JSON line per event on standard error; standard output is for people.
 * Individual requests are never logged: metrics count them, and a line each would cost more than the decision.
 */
import { type DestinationStream, destination, pino } from "pino";
import { escapeInJson } from "./printable.js";

export interface Log {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

export function createLog(level: LogLevel, to: DestinationStream = destination({ fd: 2, sync: true })): Log {
  // Fields may contain untrusted text, and people read logs on terminals (escape sequences).
  const safe: DestinationStream = { write: (line) => to.write(escapeInJson(line)) };
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, safe);
  const at =
    (name: "debug" | "info" | "warn" | "error") =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void =>
      logger[name](fields, message);
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
