/** Every format as shown in its program's documentation, and random mutations. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { detectFormat, formatNamed, formats } from "./formats.js";
import type { LogRequest, ReadLine } from "./log-request.js";

const samples: Readonly<Record<string, { name: string; lines: string[]; expected: Partial<LogRequest> }>> = {
  "Apache, common": {
    name: "common",
    lines: ['127.0.0.1 - frank [10/Oct/2026:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326'],
    expected: { atMs: Date.UTC(2026, 9, 10, 20, 55, 36), method: "GET", target: "/apache_pb.gif", peer: "127.0.0.1" },
  },
  "nginx, combined": {
    name: "combined",
    lines: [
      '203.0.113.9 - - [16/Nov/2026:07:00:01 +0100] "POST /v1/items?a=\\x22b HTTP/2.0" 201 17 "https://example.com/" "curl/8.5.0"',
    ],
    expected: {
      atMs: Date.UTC(2026, 10, 16, 6, 0, 1),
      method: "POST",
      target: '/v1/items?a="b',
      peer: "203.0.113.9",
      headers: { referer: "https://example.com/", "user-agent": "curl/8.5.0" },
    },
  },
  "Traefik, common": {
    name: "traefik",
    lines: [
      '10.0.0.7 - - [16/Nov/2026:07:00:01 +0000] "GET /whoami HTTP/1.1" 200 12 "-" "-" 42 "web@docker" "http://10.0.0.2:80" 3ms',
    ],
    expected: { atMs: Date.UTC(2026, 10, 16, 7, 0, 1), durationMs: 3, target: "/whoami", peer: "10.0.0.7" },
  },
  "Envoy, default text": {
    name: "envoy",
    lines: [
      '[2026-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80"',
    ],
    expected: {
      atMs: Date.UTC(2026, 3, 15, 20, 17, 0, 310),
      durationMs: 226,
      method: "POST",
      target: "/api/v1/locations",
      host: "locations",
      headers: { "x-forwarded-for": "10.0.35.28", "user-agent": "nsq2http" },
    },
  },
  "AWS application load balancer": {
    name: "alb",
    lines: [
      'https 2026-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/path?x=1 HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:us-east-2:123456789012:certificate/12345678" 1 2026-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_123456',
    ],
    expected: {
      atMs: Date.UTC(2026, 6, 2, 22, 23, 0, 186) - 171,
      method: "GET",
      target: "/path?x=1",
      host: "www.example.com:443",
      peer: "192.168.131.39",
      headers: { "user-agent": "curl/7.46.0" },
    },
  },
  "AWS CloudFront": {
    name: "cloudfront",
    lines: [
      "#Version: 1.0",
      "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken",
      "2026-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t/index.html\t200\t-\tMozilla/5.0%20(Windows)\t-\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\td111111abcdef8.cloudfront.net\thttps\t23\t0.001",
    ],
    expected: {
      atMs: Date.UTC(2026, 11, 4, 21, 2, 31) - 1,
      durationMs: 1,
      method: "GET",
      target: "/index.html",
      host: "d111111abcdef8.cloudfront.net",
      peer: "192.0.2.100",
    },
  },
  Caddy: {
    name: "json",
    lines: [
      '{"level":"info","ts":1795000000.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b=c","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]},"tls":{"resumed":false}},"bytes_read":0,"user_id":"","duration":0.25,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}',
    ],
    expected: {
      atMs: 1_795_000_000_250,
      durationMs: 250,
      method: "GET",
      target: "/a?b=c",
      host: "localhost",
      peer: "127.0.0.1",
      headers: { "user-agent": "curl/7.82.0", accept: "*/*" },
    },
  },
  "Traefik, JSON": {
    name: "json",
    lines: [
      '{"ClientAddr":"10.1.2.3:5000","ClientHost":"10.1.2.3","DownstreamStatus":200,"Duration":2500000,"RequestHost":"example.com","RequestMethod":"PUT","RequestPath":"/x","StartUTC":"2026-11-16T07:00:00.5Z","request_User-Agent":"Go","level":"info","msg":"","time":"2026-11-16T07:00:01Z"}',
    ],
    expected: {
      atMs: Date.UTC(2026, 10, 16, 7, 0, 0, 500),
      durationMs: 2.5,
      method: "PUT",
      target: "/x",
      host: "example.com",
      peer: "10.1.2.3",
      headers: { "user-agent": "Go" },
    },
  },
  "Envoy, JSON": {
    name: "json",
    lines: [
      '{"start_time":"2026-11-16T07:00:00.100Z","method":"GET","path":"/p","authority":"api.example.com","response_code":200,"duration":12,"downstream_remote_address":"10.9.8.7:4711","user_agent":"x"}',
    ],
    expected: {
      atMs: Date.UTC(2026, 10, 16, 7, 0, 0, 100),
      durationMs: 12,
      target: "/p",
      peer: "10.9.8.7",
      host: "api.example.com",
    },
  },
  "nginx, escape=json": {
    name: "json",
    lines: [
      '{"time_iso8601":"2026-11-16T08:00:00+01:00","remote_addr":"2001:db8::1","request":"GET /q HTTP/1.1","request_time":"0.100","status":"200","http_x_api_key":"k1"}',
    ],
    expected: {
      atMs: Date.UTC(2026, 10, 16, 7) - 100,
      durationMs: 100,
      target: "/q",
      peer: "2001:db8::1",
      headers: { "x-api-key": "k1" },
    },
  },
};

test.each(Object.entries(samples))("%s: detected, and read", (_, { name, lines, expected }) => {
  const format = detectFormat(lines);
  expect(format?.name).toBe(name);
  const read = format!.reader({}).text;
  const found = lines.map(read).find((one) => typeof one === "object") as LogRequest;
  expect({ ...found, atMs: Math.round(found.atMs) }).toMatchObject(expected);
});

test("a template of nginx's log_format, with fields that become attributes", () => {
  const format = formatNamed('$remote_addr|$msec|$request_method $request_uri|$request_time|"$http_x_user"|$tenant');
  const read = format.reader({ fields: ["tenant", "absent", "$http_x_user"] }).text;
  expect(read('192.0.2.1|1795000000.250|DELETE /a b|0.250|"bo\\x22b"|acme')).toMatchObject({
    atMs: 1_795_000_000_000,
    durationMs: 250,
    method: "DELETE",
    target: "/a b",
    peer: "192.0.2.1",
    headers: { "x-user": 'bo"b' },
    fields: ["acme", undefined, 'bo"b'],
  });
});

test("a line without a request is blank, and one that does not fit the format is a mistake", () => {
  const read = formatNamed("combined").reader({}).text;
  const line = (request: string): string => `1.2.3.4 - - [16/Nov/2026:07:00:01 +0000] "${request}" 400 0 "-" "-"`;
  expect(read("")).toBe("blank");
  expect(read(line("-"))).toBe("blank");
  expect(read(line("\\x16\\x03\\x01\\x02"))).toBe("blank");
  expect(read("hello")).toBeUndefined();
  expect(read(line("GET / HTTP/1.1").replace("Nov", "Foo"))).toBeUndefined();
});

test("an unknown format, and a template without a time, are reported with what was expected", () => {
  expect(() => formatNamed("apache2")).toThrow(/format: expected one of .*combined.*got "apache2"/);
  expect(() => formatNamed('$remote_addr "$request"')).toThrow(/expected \$time_local, \$time_iso8601 or \$msec/);
  expect(() => formatNamed("$time_local$request")).toThrow(/expected text between two variables/);
});

const pieces = [
  '"',
  "\\",
  " ",
  "[",
  "]",
  "{",
  "}",
  "\t",
  "-",
  "\u0000",
  "\ud800",
  "😀",
  "9".repeat(40),
  "__proto__",
  "%",
  "\\x",
  ":",
];

// Invalid JSON throws inside the reader; half of the time would go into unused stack traces.
const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
});

/** Deterministic random mutations. */
function mutator(seed: number): { random: (below: number) => number; mutated: (line: string) => string } {
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >> 8) % below;
  };
  const mutated = (original: string): string => {
    let line = original;
    for (let edits = 1 + random(4); edits > 0; edits--) {
      const at = random(line.length + 1);
      const cut = random(3) === 0 ? random(20) : 0;
      line = line.slice(0, at) + (random(2) === 0 ? pieces[random(pieces.length)]! : "") + line.slice(at + cut);
    }
    return line;
  };
  return { random, mutated };
}

/** Counts the outcomes of reading lines; a request without a time, method or target would be a misread. */
function outcomesOf(read: ReadLine, lines: Iterable<string>): { request: number; blank: number; bad: number } {
  const outcomes = { request: 0, blank: 0, bad: 0 };
  for (const line of lines) {
    const found = read(line);
    if (typeof found === "object") {
      outcomes.request++;
      const isMisread = found.attributes === undefined && (found.target === "" || found.method === "");
      if (!Number.isFinite(found.atMs) || isMisread) throw new Error(`misread: ${line}`);
    } else outcomes[found === "blank" ? "blank" : "bad"]++;
  }
  return outcomes;
}

const template = '$remote_addr - [$time_local] "$request" $request_time "$http_x_user"';
const ownLines: Readonly<Record<string, readonly string[]>> = {
  sluice: [
    '{"at":5,"attributes":{"user":"a","path":"/x"},"entry":"e","rules":1,"allowed":1,"checks":[{"rule":"r","allowed":true}]}',
    '{"at":6,"refund":"e"}',
  ],
  [template]: ['10.0.0.7 - [16/Nov/2026:07:00:01 +0000] "GET /a?b=c HTTP/1.1" 0.250 "u1"'],
};
const linesOf = (name: string): readonly string[] =>
  ownLines[name] ??
  Object.values(samples)
    .filter((sample) => sample.name === name)
    .map(({ lines }) => lines.at(-1)!);

test.each([...formats.map(({ name }) => name), template])(
  "100,000 mutated lines of %s: each is a request, blank or a mistake, and none throws",
  (name) => {
    const lines = linesOf(name);
    const read = formatNamed(name).reader({ fields: ["user", "__proto__", "constructor"] }).text;
    if (name === "cloudfront") read(samples["AWS CloudFront"]!.lines[1]!);
    const { random, mutated } = mutator(20_261_117);
    const outcomes = outcomesOf(
      read,
      (function* () {
        for (let i = 0; i < 100_000; i++) yield mutated(lines[random(lines.length)]!);
      })(),
    );
    expect(outcomes.request).toBeGreaterThan(1_000);
    expect(outcomes.blank + outcomes.bad).toBeGreaterThan(1_000);
  },
);

test("mutated lines of one format under the reader of another: none throws", () => {
  const lines = [...formats.map(({ name }) => name), template].flatMap(linesOf);
  const readers = formats.map((format) => format.reader({}).text);
  const { random, mutated } = mutator(20_261_118);
  for (let i = 0; i < 20_000; i++) outcomesOf(readers[random(readers.length)]!, [mutated(lines[i % lines.length]!)]);
});
