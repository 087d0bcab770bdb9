/** Bytes to a port, and what comes back: for requests that no client library would send. */
import { connect } from "node:net";

export interface RawAnswer {
  /** Of the first answer; 0 if there was none. */
  readonly status: number;
  readonly text: string;
  /** The peer fell silent, and did not close. */
  readonly timedOut: boolean;
}

/** Resolves when the peer has closed, or has been silent for so long. `bytes`: Latin-1. */
export function rawRequest(port: number, bytes: string, silenceMs = 1_000): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    let timedOut = false;
    socket.setTimeout(silenceMs, () => {
      timedOut = true;
      socket.destroy();
    });
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    // A peer that has heard enough may reset the connection; what it said before counts.
    socket.on("error", () => undefined);
    socket.on("close", () =>
      resolve({ status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0), text, timedOut }),
    );
    socket.write(Buffer.from(bytes, "latin1"));
  });
}

/** One request that asks for the connection to be closed. `headers`: whole lines without their ends. */
export function requestText({
  method = "GET",
  target,
  headers = [],
  version = "1.1",
  host = "shop.example",
  body = "",
}: {
  method?: string;
  target: string;
  headers?: readonly string[];
  version?: string;
  host?: string | undefined;
  body?: string;
}): string {
  const lines = [`${method} ${target} HTTP/${version}`, ...(host === "" ? [] : [`Host: ${host}`]), "Connection: close"];
  return `${[...lines, ...headers].join("\r\n")}\r\n\r\n${body}`;
}
