/**
 * What a client of Redis tells by events, whichever it is: that its state changed, and which error it met.
 */

interface Emitter {
  on(event: string, listener: (error?: Error) => void): unknown;
  off(event: string, listener: (error?: Error) => void): unknown;
}

const STATE_EVENTS = ["ready", "close", "end", "reconnecting"] as const;

/** The next change of a client's state; all who wait share one set of listeners. */
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

/** Remembers a client's last error. Without a listener, an error of a client would end the process. */
export function watchErrors(client: Emitter): { lastError(): Error | undefined; stop(): void } {
  let lastError: Error | undefined;
  const listener = (error?: Error): void => {
    lastError = error;
  };
  // A cluster tells the errors of single nodes apart.
  for (const event of ["error", "node error"]) client.on(event, listener);
  return {
    lastError: () => lastError,
    stop() {
      for (const event of ["error", "node error"]) client.off(event, listener);
    },
  };
}
