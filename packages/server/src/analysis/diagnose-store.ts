/**
 * Tests a Redis as the service would use it: a real decision, the commands behind the console, and the server's own information.
 * For `sluice doctor`. Writes a single counter of its own and resets it; takes at most a few seconds.
 */
import { randomUUID } from "node:crypto";
import { createLimiter, SluiceError } from "sluice";
import { type Cluster, connectRedis, KEY_PREFIX, type Redis } from "sluice/internal";
import { parseRedisUrl, redisStore } from "sluice/redis";
import { parseInfo } from "../monitoring/store-view/node-report.js";
import { type Finding, storeFindings } from "./store-findings.js";

const DEADLINE_MS = 3_000;

/** Commands that the service needs besides decisions: docs/reliability.md lists them under "Rights". None of them changes anything. */
const serviceCommands = (own: string): readonly (readonly [command: string, ...args: string[]])[] => [
  ["publish", own, ""],
  ["mget", own],
  ["hget", own, "x"],
  ["hmget", own, "x"],
  ["hgetall", own],
  ["hlen", own],
  ["hdel", own, "x"],
  ["zrange", own, "0", "0"],
  ["zrandmember", own],
  ["zrangebylex", own, "-", "+"],
  ["scan", "0", "count", "1"],
  ["memory", "usage", own],
  ["latency", "latest"],
  ["slowlog", "get", "1"],
  ["role"],
];

export async function diagnoseStore(url: string, prefix = ""): Promise<Finding[]> {
  const decided = await tryDecision(url, prefix);
  const client = connectRedis(parseRedisUrl(url), { commandTimeoutMs: DEADLINE_MS, lazy: true });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return [decided, ...(await tryCommands(client, `${prefix}${KEY_PREFIX}doctor`)), ...(await lookAt(client))];
  } catch {
    // The decision failed too, and explains why.
    return [decided];
  } finally {
    client.disconnect();
  }
}

async function tryDecision(url: string, prefix: string): Promise<Finding> {
  const check = "store";
  const limiter = createLimiter({
    store: redisStore(url, { deadlineMs: DEADLINE_MS, prefix }),
    rules: [
      { id: "doctor", key: ["probe"], algorithm: "rolling-window", limit: 1, window: "1s", onStoreFailure: "deny" },
    ],
  });
  let cause: unknown;
  limiter.on("degraded", (error) => {
    cause ??= error;
  });
  try {
    const probe = { probe: randomUUID() };
    await limiter.ready();
    const { degraded } = await limiter.check(probe);
    if (degraded !== undefined) return failed(check, cause);
    await limiter.reset("doctor", probe);
    return { check, verdict: "ok", text: "decides" };
  } catch (error) {
    return failed(check, error);
  } finally {
    await limiter.close();
  }
}

/** The library's messages end with the remedy. */
function failed(check: string, error: unknown): Finding {
  const message = error instanceof SluiceError || error instanceof Error ? error.message : "it does not answer";
  const end = message.lastIndexOf("; ");
  const [text, remedy] = end < 0 ? [message, undefined] : [message.slice(0, end), message.slice(end + 2)];
  return { check, verdict: "failed", text, remedy: remedy ?? "check the address in --store, and that Redis is up" };
}

async function tryCommands(client: Redis | Cluster, own: string): Promise<Finding[]> {
  const refused: string[] = [];
  for (const [command, ...args] of serviceCommands(own)) {
    try {
      await (client as Redis).call(command, ...args);
    } catch (error) {
      if (error instanceof Error && /NOPERM/.test(error.message)) refused.push(`+${[command, args[0]].join("|")}`);
    }
  }
  const check = "store rights";
  if (refused.length === 0) return [{ check, verdict: "ok", text: "everything that the service asks for" }];
  const names = refused.map((name) => name.replace(/\|(?!usage|latest|get).*/, ""));
  return [
    {
      check,
      verdict: "warning",
      text: `the Redis user may not ${names.join(" ")}`,
      remedy: "grant them: rules are decided, but the rule cache or views of the console miss (docs/reliability.md)",
    },
  ];
}

async function lookAt(client: Redis | Cluster): Promise<Finding[]> {
  // An ACL may forbid either.
  const info = await (client as Redis).call("info").catch(() => "");
  const askedMs = Date.now();
  const time = await (client as Redis).call("time").catch(() => undefined);
  const elapsedMs = Date.now() - askedMs;
  const [seconds, micros] = Array.isArray(time) ? time.map(Number) : [];
  const storeMs = seconds === undefined ? askedMs : seconds * 1_000 + (micros ?? 0) / 1_000;
  // The reply was created at some point between request and response: only the excess is a clock difference.
  const aheadMs = storeMs > askedMs + elapsedMs ? storeMs - askedMs - elapsedMs : Math.min(0, storeMs - askedMs);
  return storeFindings(parseInfo(String(info)), { aheadMs });
}
