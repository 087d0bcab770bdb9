/**
 * Heartbeat of a connection: closes one that has gone silent. A half-open connection (the peer rebooted, a firewall dropped the flow)
 * accepts every byte and answers none; TCP notices after minutes, and ioredis never does.
 *
 * Each beat sends a PING. If nothing was received since the last beat, the connection is closed and the client reconnects: one to two beats
 * after the silence began, and one beat after a new connection to a server that hangs. Any byte counts as an answer, even an error: the
 * connection of a user without permission to PING survives.
 */
import type { Redis } from "ioredis";

interface HeartbeatOptions {
  readonly everyMs: number;
  /** Bytes received so far, as a growing number; undefined while there is no connection. */
  readonly heard: () => Heard | undefined;
  readonly ask: () => void;
  readonly giveUp: () => void;
}

interface Heard {
  /** Identifies the connection: a new one starts over. */
  readonly connection: object;
  readonly count: number;
}

interface Heartbeat {
  /** A new connection has just sent its first command: the next beat is a full interval from now. */
  begin(): void;
  stop(): void;
}

export function startHeartbeat({ everyMs, heard, ask, giveUp }: HeartbeatOptions): Heartbeat {
  let asked: Heard | undefined;
  const beat = (): void => {
    const now = heard();
    const isSilent = asked !== undefined && asked.connection === now?.connection && asked.count === now.count;
    asked = isSilent ? undefined : now;
    if (isSilent) giveUp();
    else if (now !== undefined) ask();
  };
  // Timers run first in an event-loop turn: after a long turn, answers that have arrived are still unread.
  const start = (): NodeJS.Timeout => setInterval(() => setImmediate(beat), everyMs).unref();
  let timer = start();
  return {
    begin() {
      clearInterval(timer);
      asked = heard();
      timer = start();
    },
    stop: () => clearInterval(timer),
  };
}

/** For a connection to one server. The heartbeat ends with the client. */
export function giveUpWhenSilent(client: Redis, everyMs: number): void {
  const { begin, stop } = startHeartbeat({
    everyMs,
    heard() {
      const isOpen = client.status === "ready" || client.status === "connect";
      return isOpen && client.stream ? { connection: client.stream, count: client.stream.bytesRead } : undefined;
    },
    ask() {
      if (client.status === "ready") client.ping().catch(() => {});
    },
    giveUp() {
      // Listeners that report an outage's cause receive this error; nothing waits for what a silent peer might still send.
      client.stream.destroy(new Error(`the connection was silent for ${everyMs} ms, and is made anew`));
    },
  });
  // The handshake's commands count as the first PING.
  client.on("connect", begin);
  client.once("end", stop);
}
