/** The access log formats by name, and detection of a file's format. */
import { SluiceError } from "sluice";
import { jsonFormat } from "./json-format.js";
import type { LogFormat } from "./log-request.js";
import { isRecording, sluiceFormat } from "./sluice-format.js";
import { templateFormat } from "./template-format.js";
import { w3cFormat } from "./w3c-format.js";

const common = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent';
const combined = `${common} "$http_referer" "$http_user_agent"`;

/** Stricter formats come first: a line of Traefik is also one of combined. */
export const formats: readonly LogFormat[] = [
  sluiceFormat,
  jsonFormat,
  templateFormat({
    name: "alb",
    template:
      '$type $time_iso8601 $elb $client_port $target_port $request_processing_time $target_processing_time $response_processing_time $elb_status_code $target_status_code $received_bytes $sent_bytes "$request" "$http_user_agent"',
    timeIsEnd: true,
    isOpen: true,
  }),
  templateFormat({
    name: "envoy",
    template:
      '[$time_iso8601] "$request" $response_code $response_flags $bytes_received $bytes_sent $duration_ms $upstream_service_time "$http_x_forwarded_for" "$http_user_agent" "$request_id" "$authority" "$upstream_host"',
    timeIsEnd: false,
    isOpen: true,
  }),
  templateFormat({
    name: "traefik",
    template: `${combined} $request_count "$router" "$server_url" $duration_ms`,
    timeIsEnd: false,
  }),
  templateFormat({ name: "combined", template: combined, timeIsEnd: true, isOpen: true }),
  templateFormat({ name: "common", template: common, timeIsEnd: true, isOpen: true }),
  w3cFormat,
];

const NO_HEADERS: ReadonlySet<string> = new Set();

/** Other names for them. */
const aliases: Readonly<Record<string, string>> = {
  caddy: "json",
  nginx: "combined",
  apache: "combined",
  w3c: "cloudfront",
};

/** A listed name, or a template in the syntax of nginx's `log_format`. */
export function formatNamed(given: string): LogFormat {
  if (given.includes("$")) return templateFormat({ name: "log_format", template: given, timeIsEnd: true });
  const name = aliases[given] ?? given;
  const found = formats.find((format) => format.name === name);
  if (found !== undefined) return found;
  const known = [...formats.map((format) => format.name), ...Object.keys(aliases)].join(", ");
  throw new SluiceError(
    "invalid-setting",
    `format: expected one of ${known}, or a template such as '$remote_addr [$time_local] "$request"', got ${JSON.stringify(given)}`,
  );
}

/** The format that matches most of a file's first lines; undefined if none matches. */
export function detectFormat(lines: readonly string[]): LogFormat | undefined {
  // A recording may start with more rules than the lines sampled here.
  if (isRecording(lines[0] ?? "")) return sluiceFormat;
  let best: { format: LogFormat; fitting: number } | undefined;
  for (const format of formats) {
    const read = format.reader({ headers: NO_HEADERS }).text;
    const fitting = lines.filter((line) => typeof read(line) === "object").length;
    if (fitting > (best?.fitting ?? 0)) best = { format, fitting };
  }
  return best?.format;
}
