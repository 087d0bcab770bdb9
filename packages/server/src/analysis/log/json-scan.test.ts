import { expect, test } from "vitest";
import { jsonFormat } from "./json-format.js";

const caddy =
  '{"level":"info","ts":1795000000.123,"request":{"remote_ip":"10.0.0.7","proto":"HTTP/2.0","method":"GET","host":"shop.example","uri":"/v1/items?page=2","headers":{"User-Agent":["curl\\/8 \\"x\\""],"Accept":["*/*"]}},"bytes_read":0,"duration":0.0129,"size":-10.9e2,"status":200}';
const lines = [
  caddy,
  '{"time":"2026-11-16T07:00:00.123Z","method":"GET","path":"/a\\u0026b","status":200,"remote_addr":"10.0.0.7:443","duration_ms":12,"ok":true,"none":null}',
  '{ "StartUTC" : "2026-11-16T07:00:00Z" , "RequestPath":"/x", "ClientHost":"::1", "Duration": 1200000, "path":"-" }',
  '{"timestamp":1795000000123,"url":{"path":"/deep"},"client":{"address":"10.0.0.9"},"http":{"request":{"method":"PUT"}},"list":[1,[2,{"a":[]}],"s"]}',
];
const pieces = [
  '"',
  "\\",
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  " ",
  "\t",
  "\r",
  "\u0001",
  "\u007f",
  "é",
  "0",
  "-",
  ".",
  "e5",
  "1e999",
  "null",
  "true",
];
const names = [
  '"path":"/other"',
  '"request":"POST /y HTTP/1.1"',
  '"ts":5',
  '"\\u0070ath":"/e"',
  '"duration":1e-3',
  '"uri":[]',
  '"__proto__":{"path":"/p"}',
];

const NO_HEADERS = new Set<string>();
const bytesOf = (line: string): Buffer => Buffer.from(`${line}\n{"next":1}`);
const readBytes = (line: string, read = jsonFormat.reader({ headers: NO_HEADERS }).bytes!): unknown => {
  const bytes = bytesOf(line);
  const found = read(bytes, 0, Buffer.byteLength(line));
  if (typeof found === "string") return found;
  // Cached target data is no part of the request.
  const { memo: _, ...request } = found;
  return request;
};

test("120,000 mutated lines: bytes give the same result as JSON.parse", () => {
  const asText = jsonFormat.reader({ headers: NO_HEADERS }).text;
  const asBytes = jsonFormat.reader({ headers: NO_HEADERS }).bytes!;
  let state = 20_261_119;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >> 8) % below;
  };
  const counts = { same: 0, unread: 0 };
  for (let i = 0; i < 120_000; i++) {
    let line = lines[random(lines.length)]!;
    for (let edits = random(4); edits > 0; edits--) {
      const at = random(line.length + 1);
      const kind = random(4);
      // Inserts a name at a comma: duplicates, escapes, other ranks.
      const comma = line.indexOf(",", at);
      if (kind === 0 && comma > 0) line = `${line.slice(0, comma)},${names[random(names.length)]}${line.slice(comma)}`;
      else line = line.slice(0, at) + (kind === 1 ? pieces[random(pieces.length)] : "") + line.slice(at + random(3));
    }
    const found = readBytes(line, asBytes);
    if (found === "unread") counts.unread++;
    else {
      counts.same++;
      const wanted = asText(line);
      if (JSON.stringify(found) !== JSON.stringify(wanted)) expect({ line, found }).toEqual({ line, found: wanted });
    }
  }
  expect(counts.same).toBeGreaterThan(20_000);
  expect(counts.unread).toBeGreaterThan(20_000);
});

test("typical lines of four programs are read as bytes", () => {
  for (const line of lines) expect(readBytes(line)).toEqual(jsonFormat.reader({ headers: NO_HEADERS }).text(line));
  expect(readBytes(caddy)).toMatchObject({ target: "/v1/items?page=2", peer: "10.0.0.7", durationMs: 12.9 });
});

test.each([
  ["a name twice", '{"ts":1795000000,"path":"/a","path":"/b"}'],
  ["an escaped name", '{"ts":1795000000,"\\u0070ath":"/a"}'],
  ["a byte beyond ASCII", '{"ts":1795000000,"path":"/é"}'],
  ["deep nesting", `{"ts":1795000000,"path":"/a","x":${"[".repeat(20_000)}${"]".repeat(20_000)}}`],
  ["a line that ends early", '{"ts":1795000000,"path":"/a"'],
  ["two objects", '{"ts":1795000000,"path":"/a"}{}'],
  ["a control character in a string", '{"ts":1795000000,"path":"/a","b":"\u0001"}'],
  ["a leading zero", '{"ts":1795000000,"path":"/a","b":01}'],
])("%s is left to JSON.parse", (_, line) => {
  expect(readBytes(line)).toBe("unread");
});

test("an object does not continue on the next line", () => {
  const bytes = Buffer.from('{"ts":1795000000,"path":"/a",\n"x":1}');
  expect(jsonFormat.reader({ headers: NO_HEADERS }).bytes!(bytes, 0, bytes.indexOf(10))).toBe("unread");
});
