/** Shared by `simulate`, `suggest` and `compare`: logs, their format, and how a line becomes attributes. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { type Attributes, SluiceError } from "sluice";
import type { MaybePromise } from "sluice/internal";
import { formatNamed } from "../analysis/log/formats.js";
import type { LogRequest } from "../analysis/log/log-request.js";
import { type LogCounts, Logs } from "../analysis/log/read-logs.js";
import { requestAttributes } from "../enforcement/attributes/request-attributes.js";
import { setOwn } from "../own-fields.js";
import { printable } from "../printable.js";
import { SEGMENT_NAME } from "../recording/segments.js";
import { colours, figure, printLine } from "./print.js";
import { showProgress } from "./progress.js";

export interface LogOptions {
  readonly format?: string;
  readonly attributes?: string;
  readonly attribute: readonly FieldAttribute[];
  readonly json: boolean;
}

interface FieldAttribute {
  readonly attribute: string;
  readonly field: string;
}

export function logCommand(name: string, { isOptional = false } = {}): Command {
  return new Command(name)
    .argument(
      isOptional ? "[logs...]" : "<logs...>",
      "access logs, plain or gzip; - for standard input; the folder of a recording; several are merged by time",
    )
    .option(
      "--format <name>",
      "common, combined, traefik, envoy, alb, cloudfront, json, sluice, or a template of nginx's log_format; found by itself",
    )
    .option("--attributes <file>", "the mapping file of the service: which part of a request becomes which attribute")
    .option(
      "--attribute <name=field>",
      "an attribute from a field of the log, such as user=remote_user; repeatable",
      fieldAttribute,
      [],
    )
    .option("--json", "print JSON", false);
}

function fieldAttribute(text: string, before: readonly FieldAttribute[]): FieldAttribute[] {
  const at = text.indexOf("=");
  if (at <= 0 || at === text.length - 1) {
    throw new SluiceError("invalid-setting", `attribute: expected name=field, got ${JSON.stringify(text)}`);
  }
  return [...before, { attribute: text.slice(0, at), field: text.slice(at + 1) }];
}

/** Replaces a recording's folder by its segments. */
export function withFolders(given: readonly string[]): string[] {
  return given.flatMap((path) => {
    if (path === "-" || !statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path];
    const segments = readdirSync(path)
      .filter((name) => SEGMENT_NAME.test(name))
      .sort();
    return segments.length === 0 ? [path] : segments.map((name) => join(path, name));
  });
}

interface ReadRequest {
  readonly request: LogRequest;
  readonly attributes: Attributes;
}

/**
 * The attributes of each request that the service would not refuse as malformed, in batches: a promise per request costs more than reading
 * it.
 */
export async function* readAttributes(
  { logs, attributesOf }: OpenedLogs,
  onMalformed: () => void,
): AsyncGenerator<ReadRequest[]> {
  for await (const batch of logs.requests()) {
    const read: ReadRequest[] = [];
    for (const request of batch) {
      // Later events on a recorded decision are no requests.
      if (request.recorded !== undefined && !("checks" in request.recorded)) continue;
      try {
        const made = request.attributes ?? attributesOf(request);
        read.push({ request, attributes: made instanceof Promise ? await made : made });
      } catch (error) {
        if (!(error instanceof SluiceError) || error.code !== "invalid-request") throw error;
        onMalformed();
      }
    }
    yield read;
  }
}

export function printMalformed(count: number): void {
  if (count > 0) printLine(`${figure(count)} more are malformed: the service answers 400 whatever the rules say`);
}

export interface OpenedLogs {
  readonly logs: Logs;
  /** Throws or rejects with `invalid-request` for a request that the service would refuse as malformed. */
  readonly attributesOf: (request: LogRequest) => MaybePromise<Attributes>;
}

export function openLogs(given: readonly string[], { format, attributes, attribute }: LogOptions): OpenedLogs {
  const { attributesOf, readHeaders } = requestAttributes({ file: attributes, remembers: true });
  const logs = new Logs({
    files: withFolders(given),
    format: format === undefined ? undefined : formatNamed(format),
    fields: attribute.map(({ field }) => field),
    headers: readHeaders,
  });
  const names = attribute.map((one) => one.attribute);
  /** `read`: a fresh object, which may be modified. */
  const withFields = (read: Record<string, unknown>, fields: LogRequest["fields"]): Attributes => {
    for (let i = 0; i < fields.length; i++) {
      if (fields[i] === undefined) continue;
      setOwn(read, names[i]!, fields[i]);
    }
    return read as Attributes;
  };
  return {
    logs,
    attributesOf({ method, target, host, peer, headers, fields, memo }) {
      // Without addresses, all requests of a log count as one client.
      const facts = { method, target, host, peer: peer ?? NO_ADDRESS, headers, rawHeaders: NO_HEADERS, memo };
      const read = attributesOf(facts);
      if (fields.length === 0) return read;
      return read instanceof Promise
        ? read.then((made) => withFields({ ...made }, fields))
        : withFields(read as Record<string, unknown>, fields);
    },
  };
}

/** Reports how far logs or recordings have been read, while `work` reads them. `counts` grows meanwhile. */
export async function whileReading<T>(counts: { readonly lines: number }, work: () => Promise<T>): Promise<T> {
  const end = showProgress((seconds) => `${figure(counts.lines)} lines read, ${seconds} s`);
  return await work().finally(end);
}

const NO_HEADERS: readonly string[] = [];

const NO_ADDRESS = "0.0.0.0";

/** Prints the numbers of lines read and skipped. */
export function printLogCounts(counts: LogCounts): void {
  const { lines, requests, blank, bad, badSamples, late, withoutAddress, formats, torn } = counts;
  const names = [...new Set(formats.values())].join(", ") || "no format";
  const rest = [
    blank > 0 ? `${figure(blank)} that are no requests` : "",
    late > 0 ? `${figure(late)} out of order` : "",
  ].filter((text) => text !== "");
  printLine(
    `${figure(lines)} lines (${names}), ${figure(requests)} requests${rest.length > 0 ? `; ${rest.join(", ")}` : ""}`,
  );
  if (withoutAddress > 0) {
    const hint = "unless --attribute ip=FIELD or --attributes says where it is (Envoy: ip=http_x_forwarded_for)";
    printLine(
      colours.yellow(`${figure(withoutAddress)} requests without a client address: ip is ${NO_ADDRESS}, ${hint}`),
    );
  }
  for (const { file, why } of torn) printLine(colours.yellow(printable(`${file}: is torn or damaged: ${why}`)));
  if (bad === 0) return;
  printLine(colours.yellow(`${figure(bad)} lines could not be read:`));
  for (const { file, line, text } of badSamples) printLine(printable(`  ${file}:${line}: ${text}`));
}
