/**
 * Lower bounds on the clocks of the Redis servers: each one's clock now shows at least the time in its last reply plus the time since. So a
 * request can carry when it was sent, on the clock of its server, whatever our own clock shows.
 */

/** Nodes come and go; what is remembered about them stays bounded. */
const MOST_NODES = 1_024;

export class ServerClocks {
  /** By node: the time in its last reply, and when that reply arrived. */
  readonly #shown = new Map<string, { readonly serverMs: number; readonly atMonotonicMs: number }>();

  /** Records the time carried by a node's reply that has just arrived. */
  showed(node: string, serverMs: number): void {
    if (this.#shown.size >= MOST_NODES && !this.#shown.has(node)) this.#shown.clear();
    this.#shown.set(node, { serverMs, atMonotonicMs: performance.now() });
  }

  /** A node's clock shows at least this; 0 before its first reply. In whole milliseconds, as scripts read the time. */
  atLeastMs(node: string): number {
    const shown = this.#shown.get(node);
    return shown === undefined ? 0 : shown.serverMs + Math.floor(performance.now() - shown.atMonotonicMs);
  }
}
