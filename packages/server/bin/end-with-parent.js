// npm and npx kill the shell that they started, but not its children: a service whose parent is gone would hold its ports forever.
export function endWithParent() {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, "SIGTERM");
  }, 500).unref();
}
