/**
 * The clocks of the Redis servers, from below: each showed a time in its last reply, and by now shows that time and what has passed
 * since. So a request can carry when it was sent, by the clock of the server that it is sent to, whatever our own clock shows.
 */

/** Nodes come and go; what is remembered of them stays bounded. */
const MOST_NODES = 1_024;

export class ServerClocks {
  /** By node: the time in its last reply, and when that arrived. */
  readonly #shown = new Map<string, { readonly serverMs: number; readonly atMonotonicMs: number }>();

  /** The time that a node's reply, which has just arrived, carries. */
  showed(node: string, serverMs: number): void {
    if (this.#shown.size >= MOST_NODES && !this.#shown.has(node)) this.#shown.clear();
    this.#shown.set(node, { serverMs, atMonotonicMs: performance.now() });
  }

  /** A node's clock shows this or more; 0 before its first reply. In whole ms, as scripts read the time. */
  atLeastMs(node: string): number {
    const shown = this.#shown.get(node);
    return shown === undefined ? 0 : shown.serverMs + Math.floor(performance.now() - shown.atMonotonicMs);
  }
}
