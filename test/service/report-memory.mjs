/**
 * Loaded into a service process by the tests (`--import`, with `--expose-gc`): any message is answered with the bytes that are
 * reachable after a full collection. Resident memory would not do: when pages go back to the system is the collector's choice.
 */
import cluster from "node:cluster";

function report() {
  // Twice: what a finaliser frees is collected by the next one.
  globalThis.gc?.();
  setImmediate(() => {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    process.send?.(heapUsed + external);
  });
}

// Workers inherit the flags; their channel is the first process's.
if (cluster.isPrimary) {
  process.on("message", report);
  // The channel alone must not keep the service alive once it has drained.
  process.channel?.unref();
}
