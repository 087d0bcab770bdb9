import { expect, test } from "vitest";
import { parseRedisUrl } from "./url.js";

test.each([
  ["redis://127.0.0.1:6379", { kind: "single", nodes: [{ host: "127.0.0.1", port: 6379 }], tls: false, db: 0 }],
  ["redis://localhost", { kind: "single", nodes: [{ host: "localhost", port: 6379 }], tls: false, db: 0 }],
  [
    "rediss://u:p%40ss@redis.example:6380/2",
    {
      kind: "single",
      nodes: [{ host: "redis.example", port: 6380 }],
      tls: true,
      username: "u",
      password: "p@ss",
      db: 2,
    },
  ],
  [
    "redis://:secret@[::1]:7000",
    { kind: "single", nodes: [{ host: "::1", port: 7000 }], tls: false, password: "secret", db: 0 },
  ],
  [
    "redis+sentinel://:pw@a,b:26380/mymaster/1",
    {
      kind: "sentinel",
      nodes: [
        { host: "a", port: 26_379 },
        { host: "b", port: 26_380 },
      ],
      tls: false,
      password: "pw",
      master: "mymaster",
      db: 1,
    },
  ],
  [
    "rediss+cluster://a:1,b:2",
    {
      kind: "cluster",
      nodes: [
        { host: "a", port: 1 },
        { host: "b", port: 2 },
      ],
      tls: true,
      db: 0,
    },
  ],
])("%s", (url, target) => {
  expect(parseRedisUrl(url)).toEqual(target);
});

test.each([
  ["localhost:6379", 'expected a URL such as "redis://127.0.0.1:6379"'],
  ["http://localhost", "expected a URL such as"],
  ["redis+sentinel://a,b", "expected the master's name"],
  ["redis+cluster://a:1/3", "expected no database number: a cluster has only database 0"],
  ["redis://h:99999", 'expected a host and port, got "h:99999"'],
  ["redis://h/x", "expected a database number"],
  ["redis://%zz@h", 'expected percent-encoded names and passwords ("%" itself is "%25"), in "redis://***@h"'],
  ["redis+sentinel://a/100%", "expected percent-encoded names"],
])("%s is refused with what was expected", (url, message) => {
  expect(() => parseRedisUrl(url)).toThrow(message);
});

test("a refused URL is shown without its password", () => {
  expect(() => parseRedisUrl("redis+sentinel://u:hunter2@a")).toThrow(/\*\*\*@a/);
  expect(() => parseRedisUrl("redis+sentinel://u:hunter2@a")).not.toThrow(/hunter2/);
});
