/**
 * V8's flags for a process that serves: one thread collects garbage, and new objects get 2 MiB. A process holds a third less memory for the
 * same processor time, and no thread of the collector takes a core from the thread that answers checks (docs/decisions/0044).
 * V8 reads them when it starts: the image and the systemd unit pass them to `node`, and workers get them here.
 */
export const COLLECTOR_FLAGS: readonly string[] = ["--single-threaded-gc", "--max-semi-space-size=2"];
