/**
 * Calls to Redis with a deadline: each call is answered by its deadline or rejected with `store-unavailable`.
 *
 * How a call ends: circuit breaker open (at once) · not connected (at once, or at the deadline while connecting) · no answer by the
 * deadline · an error from Redis (READONLY, OOM, LOADING ...). If this process is late rather than Redis, the deadline moves, by up to a
 * second. After NOSCRIPT the script's source is sent, once. A reply after the deadline is dropped: its charge stands in Redis, and a retry
 * with the same request id finds it.
 *
 * All traffic to Redis passes through this file, and only this file prepends the key prefix. Callers name keys without it.
 *
 * Each cluster node has its own circuit breaker: losing one node must not stop the counting on the others.
 */
import { createHash } from "node:crypto";
import { SluiceError } from "../../errors.js";
import { KEY_PREFIX } from "../../keys.js";
import { CallCounts, type StoreStats } from "../store-stats.js";
import { decidingScripts, type ScriptName } from "./choose-script.js";
import { CircuitBreaker } from "./circuit-breaker.js";
import type { Argument, RedisConnection } from "./connection.js";
import { Deadlines } from "./deadlines.js";
import { isAboutTheCall, redisSays, unavailable } from "./failure.js";
import { crossSlotOpening, scriptSources } from "./lua/scripts.generated.js";
import { ServerClocks } from "./server-clocks.js";
import { type CallContext, TimedCall } from "./timed-call.js";

interface CallOptions {
  /** Prepended to the keys of `keys.ts`, which carry the layout version. */
  prefix: string;
  deadlineMs: number;
  breakerFailures: number;
  breakerIntervalMs: number;
}

interface Script {
  readonly source: string;
  readonly sha: string;
}

const scriptOf = (source: string): Script => ({ source, sha: createHash("sha1").update(source).digest("hex") });
const scripts = new Map(Object.entries(scriptSources).map(([name, source]) => [name, scriptOf(source)]));
/** The same scripts for keys in several slots of one node: made when a cluster first needs one. */
const crossSlotScripts = new Map<string, Script>();

function crossSlotScript(name: ScriptName): Script {
  let script = crossSlotScripts.get(name);
  if (script === undefined) {
    script = scriptOf(crossSlotOpening + scriptSources[name]);
    crossSlotScripts.set(name, script);
  }
  return script;
}

/** Stands for all nodes: calls to every node, and all calls to a single Redis. */
const WHOLE = "";
/**
 * The most a call may wait in total when this process is late rather than Redis: its event loop was blocked, or it is still connecting for
 * the first time. Beyond that, a failure policy serves the caller better.
 */
const MOST_WAIT_MS = 1_000;
/** Nodes come and go; what is remembered about them stays bounded. */
const MOST_NODES = 1_024;

export class RedisCalls {
  readonly #connection: RedisConnection;
  readonly #options: CallOptions;
  readonly #context: CallContext;
  readonly keyPrefix: string;
  readonly #breakers = new Map<string, CircuitBreaker>();
  readonly #clocks = new ServerClocks();
  readonly counts = new CallCounts();
  #closed = false;

  constructor(connection: RedisConnection, options: CallOptions) {
    this.#connection = connection;
    this.#options = options;
    this.keyPrefix = options.prefix + KEY_PREFIX;
    const { deadlineMs } = options;
    const mostMs = Math.max(MOST_WAIT_MS, deadlineMs);
    const deadlines = new Deadlines(deadlineMs, mostMs);
    this.#context = { connection, deadlines, counts: this.counts, deadlineMs, mostMs };
  }

  /** When a call that starts now must have ended. Follow-up calls share this end, so that a check has one deadline. */
  endOf(startMonotonicMs = performance.now()): number {
    return startMonotonicMs + this.#options.deadlineMs;
  }

  /** The earliest send time of a call for this key, on the clock of the key's node. */
  sentAtMs(key: string): number {
    return this.#clocks.atLeastMs(this.#connection.nodeOf(key));
  }

  /** Records the server time in the reply to a call for a key. */
  showed(key: string, serverMs: number): void {
    this.#clocks.showed(this.#connection.nodeOf(key), serverMs);
  }

  /** Loads every script, so that no check has to. No request waits for this, so it may take longer than a check's call. */
  async loadScripts(): Promise<void> {
    const endsAtMonotonicMs = performance.now() + this.#context.mostMs;
    const load = (source: string): Promise<unknown> =>
      this.#inTime(WHOLE, () => this.#connection.sendToAll("SCRIPT", ["LOAD", source]), endsAtMonotonicMs);
    const [first, ...rest] = Object.values(scriptSources);
    // Load one first: it probes an open breaker, and one failure is enough to know.
    await load(first!);
    // A server without support for scripts over several slots is detected at the first such call (node-reach.ts).
    const loadIfKnown = (name: ScriptName): Promise<unknown> =>
      load(crossSlotScript(name).source).catch((error: unknown) => {
        if (!isAboutTheCall(error)) throw error;
      });
    const crossSlot = this.#connection.sharded ? decidingScripts.map(loadIfKnown) : [];
    await Promise.all([...rest.map(load), ...crossSlot]);
  }

  /** `endsAtMonotonicMs`: the deadline of a call that follows another one's failure; by default the call gets a full deadline. */
  run(
    name: ScriptName,
    keys: readonly string[],
    args: readonly Argument[],
    endsAtMonotonicMs?: number,
  ): Promise<unknown> {
    const script = scripts.get(name)!;
    const call: Argument[] = [script.sha, keys.length, ...keys, ...args];
    for (let i = 0; i < keys.length; i++) call[i + 2] = this.keyPrefix + keys[i]!;
    return this.#run(script, call, endsAtMonotonicMs);
  }

  /**
   * Runs the script over keys in several slots of one cluster node: the node of the first key. Redis sees only that key (cross-slot.lua).
   */
  runCrossSlot(
    name: ScriptName,
    keys: readonly string[],
    args: readonly Argument[],
    endsAtMonotonicMs?: number,
  ): Promise<unknown> {
    const script = crossSlotScript(name);
    const call: Argument[] = [script.sha, 1, this.keyPrefix + keys[0]!, ...args];
    for (let i = 1; i < keys.length; i++) call.push(this.keyPrefix + keys[i]!);
    call.push(keys.length - 1);
    return this.#run(script, call, endsAtMonotonicMs);
  }

  #run({ source }: Script, call: Argument[], endsAtMonotonicMs: number | undefined): Promise<unknown> {
    const startMonotonicMs = performance.now();
    const node = this.#connection.nodeOf(String(call[2]));
    const isCold = this.#connection.isCold(node);
    return this.#inTime(node, () => this.#connection.send("EVALSHA", call), endsAtMonotonicMs).catch(
      (error: unknown) => {
        // The script cache is empty: a restart, a failover, SCRIPT FLUSH, a node that joined. Nothing has run, so it is sent again, once.
        if (!redisSays(error, /^NOSCRIPT /)) throw error;
        const again = (): Promise<unknown> => this.#connection.send("EVAL", [source, ...call.slice(1)]);
        // A cold process has spent its deadline on connecting.
        return this.#inTime(node, again, endsAtMonotonicMs ?? (isCold ? this.endOf() : this.endOf(startMonotonicMs)));
      },
    );
  }

  /** A command with one key. */
  call(command: "GET" | "DEL", key: string): Promise<unknown> {
    const node = this.#connection.nodeOf(key);
    return this.#inTime(node, () => this.#connection.send(command, [this.keyPrefix + key]));
  }

  #breakerOf(node: string): CircuitBreaker {
    let breaker = this.#breakers.get(node);
    if (breaker === undefined) {
      if (this.#breakers.size === MOST_NODES) this.#breakers.clear();
      const { breakerFailures: failures, breakerIntervalMs: intervalMs } = this.#options;
      breaker = new CircuitBreaker({ failures, intervalMs });
      this.#breakers.set(node, breaker);
    }
    return breaker;
  }

  /** Resolves by the deadline, or rejects with `store-unavailable`. */
  #inTime(node: string, send: () => Promise<unknown>, endsAtMonotonicMs?: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new SluiceError("closed", "the store is closed"));
      const breaker = this.#breakerOf(node);
      if (breaker.open && !breaker.mayCall(performance.now(), this.#connection.connectedAtMonotonicMs())) {
        this.counts.spared++;
        this.#connection.lookAgain();
        return reject(unavailable("it did not answer lately", breaker.cause ?? this.#connection.lastError()));
      }
      new TimedCall(this.#context, { node, breaker, send, resolve, reject, endsAtMonotonicMs });
    });
  }

  /** The breaker's state is the worst among the nodes that are still called. */
  stats(): Omit<StoreStats, "undos"> {
    const sinceMonotonicMs = performance.now() - 2 * this.#options.breakerIntervalMs;
    const states = [...this.#breakers]
      .filter(([node, breaker]) => node === WHOLE || breaker.failedSince(sinceMonotonicMs))
      .map(([, { state }]) => state);
    const worst = (["open", "half-open"] as const).find((state) => states.includes(state));
    return this.counts.read(worst ?? "closed");
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connection.close();
  }
}
