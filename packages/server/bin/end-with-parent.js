// npm and npx end the shell that they have started, not what that shell runs: a service whose parent is gone would hold its ports for ever.
export function endWithParent() {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, "SIGTERM");
  }, 500).unref();
}
