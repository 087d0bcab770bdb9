/**
 * Forwards a WebSocket upgrade: asks the upstream, relays its answer, then joins the two connections.
 * Only WebSocket: forwarding `Upgrade: h2c` would open a tunnel to the upstream whose requests are never checked (h2c smuggling).
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import { problem } from "../../http/problem.js";
import { problemResponseText } from "../../http/write-problem.js";
import { endToEnd, reasonOf } from "./message-headers.js";
import type { Upstream } from "./upstream.js";

interface Upgrading {
  readonly client: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that the client sent after its request. */
  readonly head: Buffer;
  readonly upstream: Upstream;
  readonly rateLimitFields: Readonly<Record<string, string>>;
  /** Called once, when either side has disconnected. */
  readonly onEnd: () => void;
}

const unreachable = problem("upstream-unreachable", "the upstream could not be reached");

export function isWebSocket({ headers, method }: IncomingMessage): boolean {
  const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket" && !hasBody;
}

export function passUpgrade({ client, socket, head, upstream, rateLimitFields, onEnd }: Upgrading): void {
  const request = upstream.start(client, { extra: ["Connection", "Upgrade", "Upgrade", "websocket"] });
  const added = Object.entries(rateLimitFields).flat();
  socket.once("close", () => {
    request.destroy();
    onEnd();
  });
  let hasAnswered = false;
  const fail = (): void => {
    if (!hasAnswered && !socket.destroyed) socket.end(problemResponseText(unreachable));
    hasAnswered = true;
  };
  request.on("error", fail);
  // Node reports no error if an upstream closes after an interim response (1xx).
  request.once("close", fail);
  request.on("response", (answer) => {
    // The upstream declined: relay its complete response, which ends with the connection.
    if (answer.statusCode! < 200) return fail();
    hasAnswered = true;
    const fields = [
      ...endToEnd(answer.rawHeaders, { drop: (name) => name === "content-length" }),
      ...added,
      "Connection",
      "close",
    ];
    socket.write(responseHead(answer.statusCode!, reasonOf(answer), fields), "latin1");
    // Reset the connection if the response breaks off: its length is not forwarded, so half of it would look complete.
    pipeline(answer, socket, (error) => {
      if (error != null) (socket as Socket).resetAndDestroy();
    });
  });
  request.on("upgrade", (answer, upstreamSocket, upstreamHead) => {
    hasAnswered = true;
    const fields = [...endToEnd(answer.rawHeaders), ...added, "Connection", "Upgrade", "Upgrade", "websocket"];
    socket.write(responseHead(101, reasonOf(answer), fields), "latin1");
    if (upstreamHead.length > 0) socket.write(upstreamHead);
    if (head.length > 0) upstreamSocket.write(head);
    join(socket, upstreamSocket);
  });
  request.end();
}

function join(client: Duplex, upstream: Duplex): void {
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    from.pipe(to);
    // "close" follows every error, and ends the other side.
    from.on("error", () => undefined);
    // WebSockets have no half-closed state: when one side ends, flush pending data and close both.
    from.once("end", () => void (to as Socket).destroySoon());
    from.once("close", () => to.destroy());
  }
}

/** Node provides no response object for a connection that it has handed over. */
export function responseHead(status: number, phrase: string, fields: readonly string[]): string {
  let head = `HTTP/1.1 ${status} ${phrase}\r\n`;
  for (let i = 0; i + 1 < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return `${head}\r\n`;
}
