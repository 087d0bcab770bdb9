/**
 * The events of a Redis client, ioredis or node-redis: state changes, its last error, whether it is connecting for the first time.
 */

interface Emitter {
  readonly status?: string;
  readonly isReady?: boolean;
  on(event: string, listener: (error?: Error) => void): unknown;
  off(event: string, listener: (error?: Error) => void): unknown;
}

const STATE_EVENTS = ["ready", "close", "end", "reconnecting"] as const;

/** The next state change of a client. All waiters share one set of listeners. */
export function changesOf(client: Emitter): () => Promise<void> {
  let next: Promise<void> | undefined;
  return () => {
    next ??= new Promise((resolve) => {
      const changed = (): void => {
        for (const event of STATE_EVENTS) client.off(event, changed);
        next = undefined;
        resolve();
      };
      for (const event of STATE_EVENTS) client.on(event, changed);
    });
    return next;
  };
}

/** Follow-up errors, which must not hide the original one. */
const FOLLOWS =
  /^(Connection is closed|Reached the max retries|Stream isn't writeable|None of startup nodes is available|Command aborted)/;

interface ClientWatch {
  lastError(): Error | undefined;
  /** When the client last became ready, on the monotonic clock. */
  connectedAtMonotonicMs(): number;
  stop(): void;
}

/**
 * Remembers a client's last error until it is connected again: the error explains why it is not. A client error without a listener would
 * end the process.
 */
export function watchClient(client: Emitter): ClientWatch {
  let lastError: Error | undefined;
  let connectedAtMonotonicMs = Number.NEGATIVE_INFINITY;
  const failed = (error?: Error): void => {
    if (lastError === undefined || !FOLLOWS.test(error?.message ?? "")) lastError = error;
  };
  const connected = (): void => {
    lastError = undefined;
    connectedAtMonotonicMs = performance.now();
  };
  // A cluster emits the errors of single nodes as a separate event.
  const listeners = [
    ["error", failed],
    ["node error", failed],
    ["ready", connected],
  ] as const;
  for (const [event, listener] of listeners) client.on(event, listener);
  return {
    lastError: () => lastError,
    connectedAtMonotonicMs: () => connectedAtMonotonicMs,
    stop() {
      for (const [event, listener] of listeners) client.off(event, listener);
    },
  };
}

/** How a first connection attempt ends. */
const OUTCOMES = ["ready", "close", "end", "error"] as const;

/** A node of an ioredis cluster. */
interface ClusterNode extends Emitter {
  readonly options: { readonly host?: string; readonly port?: number; readonly readOnly?: boolean };
}

/**
 * Whether a client, or a leader of its cluster, is connecting for the first time since the process started. The first attempt to finish,
 * successful or not, ends the cold start. Nothing later is cold, neither a node that is back nor a promoted replica: otherwise an outage
 * would delay checks as long as a cold start may.
 */
export function coldStartOf(client: Emitter): (node: string) => boolean {
  if (client.status === "ready" || client.isReady === true) return () => false;
  let isCold = true;
  const cold = new Set<string>();
  const added = (one?: unknown): void => {
    const node = one as ClusterNode;
    const name = `${node.options.host}:${node.options.port}`;
    if (node.options.readOnly === true) return;
    cold.add(name);
    for (const event of ["ready", "close", "end"]) node.on(event, () => cold.delete(name));
  };
  // A client that was passed in outlives its stores: no listener stays on it.
  const warm = (): void => {
    isCold = false;
    for (const event of OUTCOMES) client.off(event, warm);
    client.off("+node", added);
  };
  for (const event of OUTCOMES) client.on(event, warm);
  client.on("+node", added);
  return (node) => isCold || (cold.size > 0 && cold.has(node));
}
