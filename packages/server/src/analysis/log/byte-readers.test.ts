/** Reading lines as bytes gives the same result as reading them as text: for typical lines of every format, and random mutations. */
import { expect, test } from "vitest";
import { formatNamed } from "./formats.js";
import type { LineReader, LogRequest, Wanted } from "./log-request.js";

interface Case {
  readonly name: string;
  readonly wanted?: Wanted;
  /** As bytes, one per character. The first ones are typical and must be read as bytes. */
  readonly lines: readonly string[];
  readonly head?: string;
  /** Lines that change the meaning of the following ones. */
  readonly heads?: readonly string[];
}

const fieldsLine = (columns: string): string => `#Fields: ${columns}`;
const CLOUDFRONT =
  "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken";
const IIS =
  "date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status time-taken";

const cases: readonly Case[] = [
  {
    name: "combined",
    lines: [
      '203.0.113.9 - - [16/Nov/2026:07:00:01 +0100] "POST /v1/items?a=b HTTP/2.0" 201 17 "https://example.com/" "curl/8.5.0"',
      '2001:db8::1 - bob [16/Nov/2026:07:00:02 +0100] "GET / HTTP/1.1" 200 - "-" "-" "more"',
      '1.2.3.4 - - [16/Nov/2026:07:00:02 +0100] "GET http://a.example?x HTTP/1.1" 200 - "-" "caf\xc3\xa9"',
      '1.2.3.4 - - [16/Nov/2026:07:00:02 +0100] "-" 400 0 "-" "-"',
    ],
  },
  { name: "common", lines: ['127.0.0.1 - frank [10/Oct/2026:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326'] },
  {
    name: "traefik",
    lines: [
      '10.0.0.7 - - [16/Nov/2026:07:00:01 +0000] "GET /whoami HTTP/1.1" 200 12 "-" "-" 42 "web@docker" "http://10.0.0.2:80" 3ms',
    ],
  },
  {
    name: "envoy",
    wanted: { headers: new Set(["x-forwarded-for"]), fields: ["request_id", "http_x_forwarded_for", "none"] },
    lines: [
      '[2026-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80"',
    ],
  },
  {
    name: "alb",
    lines: [
      'https 2026-07-02T22:23:00.186641Z app/lb/50dc 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/path?x=1 HTTP/1.1" "curl/7.46.0" ECDHE TLSv1.2 arn:aws "Root=1" "-"',
      'h2 2026-07-02T22:23:00.186999Z app/lb/50dc [2001:db8::1]:2817 - -1 -1 -1 502 - 0 57 "GET https://www.example.com/ HTTP/2.0" "-" - - -',
    ],
  },
  {
    name: '$remote_addr [$time_iso8601] "$request" $status $request_time "$http_user_agent"',
    lines: ['10.0.0.7 [2026-11-16T07:00:01+01:00] "GET /a?b=c HTTP/1.1" 200 0.250 "u1"'],
  },
  {
    name: "$remote_addr|$msec|$request_method $request_uri|$duration_ms|$host|$tenant",
    wanted: { fields: ["tenant"] },
    lines: ["192.0.2.1:80|1795000000.250|DELETE /a b|12.5|shop.example|acme", "-|1795000000250|GET /|-|-|"],
  },
  {
    name: '$time_local - $uri || "$request_time" $remote_addr, ',
    lines: ['16/Nov/2026:07:00:01 +0000 - /a - /b || "0.5" 10.0.0.1, '],
  },
  {
    name: "cloudfront",
    head: fieldsLine(CLOUDFRONT),
    heads: [
      fieldsLine(CLOUDFRONT),
      fieldsLine("cs-uri-stem date time c-ip"),
      fieldsLine(IIS),
      fieldsLine("date time cs-uri-stem cs-uri-query x-host-header cs(Host) cs-host time-taken c-ip"),
    ],
    lines: [
      "2026-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td1.cloudfront.net\t/index.html\t200\t-\tMoz%20(W)\t-\t-\tHit\tSOX4==\td1.example\thttps\t23\t0.001",
      "2026-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tPUT\td1.cloudfront.net\t/index.html\t200\t-\tcaf\xc3\xa9\ta=b&c\t-\tHit\tSOX4==\t-\thttps\t23\t0.250\tmore",
      "2026-11-16 07:00:01 10.0.0.1 GET /default.htm q=1 80 - 203.0.113.7 Mozilla/5.0+(x) 200 31",
    ],
  },
  {
    name: "json",
    lines: [
      '{"level":"info","ts":1795000000.5,"request":{"remote_ip":"127.0.0.1","client_ip":"127.0.0.1","method":"GET","host":"localhost","uri":"/a?b=c","headers":{"User-Agent":["curl"]}},"duration":0.25,"size":10900,"status":200}',
      '{"time":"2026-11-16T07:00:00.123Z","method":"GET","path":"/a?b=c","status":200,"remote_addr":"10.0.0.7:443","host":"shop.example","duration_ms":12}',
      '{"start_time":"2026-11-16 07:00:00,123456","time":"-","url":"https://a.example/x?y","path":"/z","duration":12,"ip":"10.9.8.7"}',
      '{"msec":"1795000000.123","time_local":"10/Oct/2026:13:55:36 +0200","uri":"/q","request_time":"0.100"}',
    ],
  },
];

const pieces = [
  '"',
  "\\",
  "\\x22",
  '\\"',
  " ",
  "\t",
  "\r",
  "\0",
  "-",
  ".",
  ",",
  ":",
  "[",
  "]",
  "|",
  "ms",
  "e5",
  "0x1f",
  "+",
  "\xff",
  "\xc3\xa9",
  "\xe2\x82",
  "9".repeat(17),
  "0",
  "5",
  "Z",
  "+02:00",
  ".999999999",
  "http://h",
  "é",
  "x".repeat(300),
];

function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >> 8) % below;
  };
}

function mutated(original: string, next: (below: number) => number): string {
  let line = original;
  for (let edits = next(4); edits > 0; edits--) {
    const at = next(line.length + 1);
    const cut = next(3) === 0 ? next(12) : next(2);
    line = line.slice(0, at) + (next(3) > 0 ? pieces[next(pieces.length)]! : String(next(10))) + line.slice(at + cut);
  }
  return line;
}

/** As in a file: followed by another line, sometimes with a Windows line end or none. */
function readBoth(reader: LineReader, line: string, behind = "\nnext line"): { found: Read; wanted: Read } {
  const bytes = Buffer.from(line + behind, "latin1");
  const end = bytes.length - behind.length;
  const found = reader.bytes!(bytes, 0, end);
  return { found, wanted: found === "unread" ? undefined : reader.text(bytes.toString("utf8", 0, end)) };
}

type Read = LogRequest | "blank" | "unread" | undefined;

/** Formatted only if they seem to differ, because that takes longer than reading a line. */
function expectAlike(line: string, { found, wanted }: { found: Read; wanted: Read }): void {
  if (isAlike(found, wanted)) return;
  expect({ line, found: spelled(found) }).toEqual({ line, found: spelled(wanted) });
}

/** Compares all fields that either has, except the cached target data. */
function isAlike(found: unknown, wanted: unknown): boolean {
  if (typeof found !== "object" || typeof wanted !== "object") return found === wanted;
  const [one, other] = [found as Record<string, unknown>, wanted as Record<string, unknown>];
  for (const name in one) if (name !== "memo" && !isAlike(one[name], other[name])) return false;
  for (const name in other) if (name !== "memo" && other[name] !== undefined && !(name in one)) return false;
  return true;
}

/** Cached target data is no part of the request. */
function spelled(read: Read): string {
  if (typeof read !== "object") return String(read);
  const { memo: _, ...request } = read;
  return JSON.stringify(request);
}

const NO_HEADERS: ReadonlySet<string> = new Set();
const opened = ({ name, wanted = { headers: NO_HEADERS }, head }: Case): LineReader => {
  const reader = formatNamed(name).reader({ headers: NO_HEADERS, ...wanted });
  if (head !== undefined) reader.text(head);
  return reader;
};
const behinds = ["\nnext line", "\r\nnext line", ""];

test.each(cases)("typical lines of $name are read as bytes, with the same result as text", (one) => {
  const reader = opened(one);
  for (const [i, line] of one.lines.entries()) {
    if (one.name === "cloudfront" && i === 2) reader.text(fieldsLine(IIS));
    for (const behind of behinds) {
      const both = readBoth(reader, line, behind);
      expect(both.found).not.toBe("unread");
      expectAlike(line, both);
    }
  }
});

test.each(cases)("100,000 mutated lines of $name: bytes give the same result as text", (one) => {
  const next = random(20_261_118);
  const reader = opened(one);
  const counts = { same: 0, unread: 0 };
  for (let i = 0; i < 100_000; i++) {
    if (one.heads !== undefined && next(50) === 0) reader.text(one.heads[next(one.heads.length)]!);
    const line = mutated(one.lines[next(one.lines.length)]!, next).replaceAll("\n", " ");
    const both = readBoth(reader, line, behinds[next(3)]!);
    if (both.found === "unread") counts.unread++;
    else {
      counts.same++;
      expectAlike(line, both);
    }
  }
  expect(counts.same).toBeGreaterThan(20_000);
  expect(counts.unread).toBeGreaterThan(5_000);
});

test("consecutive times: changing fractions, seconds and zones", () => {
  const next = random(7);
  const reader = formatNamed("$time_iso8601|$uri").reader({});
  const zones = ["Z", "", "+00:00", "+0200", "-07:00"];
  let read = 0;
  for (let i = 0; i < 50_000; i++) {
    const digits = next(11);
    const fraction =
      digits === 0 ? "" : `${next(9) === 0 ? "," : "."}${String(next(1e9)).padStart(9, "9").slice(0, digits)}`;
    const seconds = String(next(3) === 0 ? next(62) : 7).padStart(2, "0");
    const line = `${next(40) === 0 ? "1970-01-01T00:00" : "2026-11-16T07:00"}:${seconds}${fraction}${zones[next(zones.length)]}|/a`;
    const both = readBoth(reader, line);
    if (both.found === "unread") continue;
    read++;
    expectAlike(line, both);
  }
  expect(read).toBeGreaterThan(40_000);
});

test("a template with non-ASCII fixed text, or a backslash, is read as text", () => {
  expect(formatNamed("$time_iso8601 é $uri").reader({}).bytes).toBeUndefined();
  expect(formatNamed("$time_iso8601 \\ $uri").reader({}).bytes).toBeUndefined();
});
