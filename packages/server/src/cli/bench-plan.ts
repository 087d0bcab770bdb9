/** Turns the arguments of `sluice bench` into a plan. Errors name the argument, what was expected and what was given. Pure. */
import { SluiceError } from "sluice";
import { parseDuration } from "sluice/internal";
import { parseAttributes } from "./attribute-arguments.js";
import type { LoadPlan } from "./bench-load.js";
import { isLoopback } from "./no-answer.js";
import type { ClientOptions } from "./service-client.js";

export interface BenchOptions extends ClientOptions {
  readonly requests?: number;
  readonly duration?: number;
  readonly connections: number;
  readonly keys?: number;
  readonly cost?: number;
  readonly rate?: number;
  readonly timeout: number;
  readonly yes: boolean;
  readonly json: boolean;
}

export interface BenchPlan extends LoadPlan {
  readonly server: string;
  readonly token: string | undefined;
  readonly timeoutMs: number;
  /** The number of keys that requests are spread over. */
  readonly keys: number;
  /** The body of request `n`. */
  readonly bodyOf: (n: number) => string;
}

export const benchDefaults = { requests: 10_000, durationMs: 10_000, connections: 8, keys: 1_000, timeoutMs: 5_000 };
const bounds = { connections: 1_000, rate: 100_000, durationMs: 86_400_000 };
const PLACE = "{n}";

export function benchPlan(given: readonly string[], options: BenchOptions): BenchPlan {
  const { server, token, connections, cost, rate, requests, duration, timeout } = options;
  const isUrl = URL.canParse(server) && /^https?:$/.test(new URL(server).protocol);
  if (!isUrl) throw misuse(`--server: expected an http or https URL, got ${JSON.stringify(server)}`);
  if (!isLoopback(server) && !options.yes)
    throw misuse(
      `--server: ${new URL(server).host} is not this machine. A load test charges its counters and takes its capacity; add --yes if that is what you want`,
    );
  atMost("connections", connections, bounds.connections);
  atMost("rate", rate ?? 0, bounds.rate);
  const isBounded = requests !== undefined || duration !== undefined;
  return {
    server,
    token,
    connections,
    rate,
    // A given bound applies alone; without any, both defaults apply.
    requests: requests ?? (isBounded ? Number.POSITIVE_INFINITY : benchDefaults.requests),
    durationMs: duration ?? (isBounded ? Number.POSITIVE_INFINITY : benchDefaults.durationMs),
    timeoutMs: timeout,
    ...spread(parseAttributes(given), { keys: options.keys, cost }),
  };
}

/** Replaces `{n}` in values by the key's number; if there is none and no user is named, users are generated. */
function spread(
  named: Readonly<Record<string, string>>,
  { keys, cost }: { keys: number | undefined; cost: number | undefined },
): Pick<BenchPlan, "keys" | "bodyOf"> {
  const hasPlace = Object.values(named).some((value) => value.includes(PLACE));
  const attributes = hasPlace || "user" in named ? named : { ...named, user: `bench-${PLACE}` };
  const isSpread = hasPlace || attributes !== named;
  if (!isSpread && keys !== undefined)
    throw misuse(`--keys: no attribute has ${PLACE}, so there is one key; write for example user=bench-${PLACE}`);
  const count = isSpread ? (keys ?? benchDefaults.keys) : 1;
  const entries = Object.entries(attributes);
  const bodyOf = (n: number): string => {
    const filled = entries.map(([name, value]) => [name, value.replaceAll(PLACE, String(n % count))]);
    return JSON.stringify({ attributes: Object.fromEntries(filled), ...(cost !== undefined && { cost }) });
  };
  return { keys: count, bodyOf };
}

/** For `--duration` and `--timeout`. */
export function parseLength(name: string): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text);
    if (ms !== undefined && ms > 0 && ms <= bounds.durationMs) return ms;
    throw misuse(`--${name}: expected a duration such as 10s, of at most a day, got ${JSON.stringify(text)}`);
  };
}

function atMost(name: string, value: number, most: number): void {
  if (value > most) throw misuse(`--${name}: expected at most ${most}, got ${value}`);
}

const misuse = (message: string): SluiceError => new SluiceError("invalid-setting", message);
