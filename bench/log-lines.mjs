/** Access logs as a shop's would be: few clients send most requests, times go on by some milliseconds. The same lines in every run. */
import { once } from "node:events";
import { createWriteStream } from "node:fs";

const START_MS = Date.UTC(2026, 10, 16, 7);
const CLIENTS = 20_000;
const BATCH = 5_000;
const AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36";
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `10/Oct/2026:13:55:36 +0000` */
function localTime(at) {
  const iso = at.toISOString();
  return `${iso.slice(8, 10)}/${months[at.getUTCMonth()]}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`;
}

const combined = ({ at, client, target, i }) =>
  `${client} - - [${localTime(at)}] "GET ${target} HTTP/1.1" 200 ${1_000 + (i % 999)} "https://example.com/start" "${AGENT}"`;

/** Each as its vendor documents it. */
const spellings = {
  combined,
  nginx: ({ at, client, target, i }) =>
    `${client} [${at.toISOString().slice(0, 19)}+00:00] "GET ${target} HTTP/1.1" 200 ${1_000 + (i % 999)} 0.0${10 + (i % 50)} "${AGENT}"`,
  /** A service that logs by itself. */
  json: ({ at, client, target, i }) =>
    JSON.stringify({
      time: at.toISOString(),
      level: "info",
      method: "GET",
      path: target,
      status: 200,
      remote_addr: client,
      host: "shop.example",
      duration_ms: 1 + (i % 50),
      user_agent: AGENT,
    }),
  caddy({ at, client, target, i }) {
    const headers = { "User-Agent": [AGENT], "Accept-Encoding": ["gzip, deflate, br"] };
    const request = {
      remote_ip: client,
      client_ip: client,
      proto: "HTTP/2.0",
      method: "GET",
      host: "shop.example",
      uri: target,
      headers,
    };
    return JSON.stringify({
      level: "info",
      ts: at.getTime() / 1_000,
      logger: "http.log.access",
      msg: "handled request",
      request,
      bytes_read: 0,
      user_id: "",
      duration: 0.0009 + (i % 50) / 1e4,
      size: 10_900,
      status: 200,
    });
  },
  traefik: (line) => `${combined(line)} ${line.i} "shop@docker" "http://10.0.0.7:8080" ${1 + (line.i % 50)}ms`,
  envoy: ({ at, client, target, i }) =>
    `[${at.toISOString()}] "GET ${target} HTTP/1.1" 200 - 0 ${1_000 + (i % 999)} ${1 + (i % 50)} ${i % 50} "${client}" "${AGENT}" "9c9c9c9c-0000-4000-8000-${String(i).padStart(12, "0")}" "shop.example" "10.0.0.7:8080"`,
  alb: ({ at, client, target, i }) =>
    `https ${at.toISOString().slice(0, 23)}000Z app/shop/50dc6c495c0c9188 ${client}:${20_000 + (i % 9_999)} 10.0.0.7:80 0.000 0.0${10 + (i % 50)} 0.000 200 200 34 ${1_000 + (i % 999)} "GET https://shop.example:443${target} HTTP/1.1" "${AGENT}" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/shop/73e2d6bc24d8a067 "Root=1-58337262-36d228ad5d99923122bbe354" "shop.example" "-" 0 ${at.toISOString().slice(0, 23)}000Z "forward" "-" "-" "10.0.0.7:80" "200" "-" "-"`,
  cloudfront({ at, client, target, i }) {
    const iso = at.toISOString();
    const [path, query] = target.split("?");
    const agent = AGENT.replaceAll(" ", "%20");
    return `${iso.slice(0, 10)}\t${iso.slice(11, 19)}\tFRA2-C1\t${1_000 + (i % 999)}\t${client}\tGET\td111111abcdef8.cloudfront.net\t${path}\t200\t-\t${agent}\t${query}\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\tshop.example\thttps\t23\t0.0${10 + (i % 50)}\t-\tTLSv1.2\tECDHE-RSA-AES128-GCM-SHA256\tHit\tHTTP/2.0\t-\t-`;
  },
};

const CLOUDFRONT_HEAD = `#Version: 1.0
#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields
`;

/** More that `simulate` must be told: a format that it cannot find by itself, an address that is in a header. */
export const argumentsFor = {
  nginx: [
    "--format",
    '$remote_addr [$time_iso8601] "$request" $status $body_bytes_sent $request_time "$http_user_agent"',
  ],
  envoy: ["--attribute", "ip=http_x_forwarded_for"],
};
export const formats = Object.keys(spellings);

/** `clientOf`: by a number from 0 to 1, the busiest client at 0. */
export async function writeLog(file, { format, lines, clientOf = addressOf }) {
  const out = createWriteStream(file);
  if (format === "cloudfront") out.write(CLOUDFRONT_HEAD);
  let state = 7;
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return state / 2 ** 31;
  };
  for (let from = 0; from < lines; from += BATCH) {
    const texts = [];
    for (let i = from; i < Math.min(lines, from + BATCH); i++) {
      const at = new Date(START_MS + i * 5);
      const target = `/v1/items/${Math.floor(random() * 1_000)}?page=${i % 7}`;
      texts.push(spellings[format]({ at, client: clientOf(random() ** 4), target, i }));
    }
    if (!out.write(`${texts.join("\n")}\n`)) await once(out, "drain");
  }
  out.end();
  await once(out, "close");
}

function addressOf(share) {
  const number = Math.floor(share * CLIENTS);
  return `10.1.${number >> 8}.${number & 0xff}`;
}
