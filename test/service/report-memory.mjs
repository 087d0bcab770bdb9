/**
 * Loaded into a service process by the tests (`--import`, with `--expose-gc`): any message is answered with the bytes that are
 * reachable after a full collection. Resident memory would not do: when pages go back to the system is the collector's choice.
 */
import cluster from "node:cluster";

function report() {
  globalThis.gc?.();
  setImmediate(() => {
    // What finalisers freed meanwhile is collected now. A background thread frees the memory of dead buffers, such as the 64 reads of
    // 64 KB that one turn of the event loop makes of a fast stream, and they count until then: the next collection waits for it first.
    globalThis.gc?.();
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
