/**
 * Heartbeat of a connection: closes one that has gone silent. A half-open connection (the peer rebooted, a firewall forgot the flow) accepts every byte
 * and answers none; TCP itself notices after minutes, and ioredis never does.
 *
 * Each beat sends a PING. A beat that has received nothing since the last one closes the connection, so that the client connects
 * anew: one to two beats after the silence began, and one beat after a new connection to a server that hangs. Any byte
 * counts as an answer, also an error: the connection of a user without the right to PING lives.
 */
import type { Redis } from "ioredis";

interface HeartbeatOptions {
  readonly everyMs: number;
  /** The bytes received so far, as a number that grows; undefined while there is no connection. */
  readonly heard: () => Heard | undefined;
  readonly ask: () => void;
  readonly giveUp: () => void;
}

interface Heard {
  /** A connection that was replaced begins anew. */
  readonly connection: object;
  readonly count: number;
}

interface Heartbeat {
  /** A new connection has just asked its first question: the next beat comes a whole beat from now. */
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
  // Timers come first in a turn of the event loop: after a turn that took long, answers that have arrived are still to be read.
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
      // Listeners that name an outage's cause receive this error; nothing waits for what a silent peer might still send.
      client.stream.destroy(new Error(`the connection was silent for ${everyMs} ms, and is made anew`));
    },
  });
  // The handshake's commands are the first question.
  client.on("connect", begin);
  client.once("end", stop);
}
