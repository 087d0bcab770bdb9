/**
 * Passes a WebSocket upgrade on: asks the upstream, hands its answer back, then joins the two connections.
 * Only WebSockets: passing `Upgrade: h2c` on would open a tunnel to the upstream in which no request is ever checked.
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
  /** Bytes that the client sent behind its request. */
  readonly head: Buffer;
  readonly upstream: Upstream;
  readonly rateLimitFields: Readonly<Record<string, string>>;
  /** Called once, when either side has gone. */
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
  // An upstream that closes after an interim answer (1xx) is no error to Node.
  request.once("close", fail);
  request.on("response", (answer) => {
    // The upstream declined. Its answer is passed on whole, and ends with the connection.
    if (answer.statusCode! < 200) return fail();
    hasAnswered = true;
    const fields = [
      ...endToEnd(answer.rawHeaders, { drop: (name) => name === "content-length" }),
      ...added,
      "Connection",
      "close",
    ];
    socket.write(responseHead(answer.statusCode!, reasonOf(answer), fields), "latin1");
    // Cut with the answer: its length is not passed on, so half of it would look whole, or the client would wait for the rest.
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
    // An error is followed by "close", which ends the other side.
    from.on("error", () => undefined);
    // A WebSocket has no half-closed state: when one side has ended, what is on its way is sent and both are closed.
    from.once("end", () => void (to as Socket).destroySoon());
    from.once("close", () => to.destroy());
  }
}

/** Node has no response object for a connection that it has handed over. */
export function responseHead(status: number, phrase: string, fields: readonly string[]): string {
  let head = `HTTP/1.1 ${status} ${phrase}\r\n`;
  for (let i = 0; i + 1 < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return `${head}\r\n`;
}
