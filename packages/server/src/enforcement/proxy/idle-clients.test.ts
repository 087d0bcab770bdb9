/** The tests emit Node's "timeout" event themselves, so as not to depend on how fast a busy machine reads a request. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { closeIdleClients, type Exchange } from "./idle-clients.js";

const IDLE_MS = 3_600_000;
let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

interface Stage {
  readonly client: Socket;
  /** The server side of the connection. */
  readonly socket: Socket;
  /** The request that is decided. */
  readonly asked: Promise<Exchange>;
  /** Decides the request. Returns its response. */
  readonly passed: () => Promise<ServerResponse>;
}

async function start(sent: string): Promise<Stage> {
  server = createServer();
  const asks = closeIdleClients(server, IDLE_MS);
  const asked = new Promise<Exchange>((resolve) => {
    server.on("request", (client: IncomingMessage, response: ServerResponse) => {
      const exchange = { client, response, isDecided: false };
      asks(exchange);
      resolve(exchange);
    });
  });
  const passed = async (): Promise<ServerResponse> => {
    const exchange = await asked;
    exchange.isDecided = true;
    return exchange.response;
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const connected = once(server, "connection");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => undefined);
  client.write(sent);
  const [socket] = (await connected) as [Socket];
  return { client, socket, asked, passed };
}

/** Simulates an idle timeout. Returns whether the connection survived. */
function survivesTimeout(socket: Socket): boolean {
  expect(socket.timeout).toBe(IDLE_MS);
  server.emit("timeout", socket);
  return !socket.destroyed;
}

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

test("a client that waits for an answer, or for more of one, is not disconnected; once it has everything, it is", async () => {
  const { client, socket, passed } = await start(GET);
  const response = await passed();
  let text = "";
  client.on("data", (chunk) => (text += chunk));
  expect([survivesTimeout(socket), survivesTimeout(socket)]).toEqual([true, true]);
  response.write("first");
  await expect.poll(() => text).toContain("first");
  expect(survivesTimeout(socket)).toBe(true);
  response.end("last");
  await expect.poll(() => text).toContain("last");
  server.emit("timeout", socket);
  expect(socket.destroyed).toBe(true);
});

test("a client that sends nothing is disconnected", async () => {
  expect(survivesTimeout((await start("")).socket)).toBe(false);
});

test("a client that does not finish its request is disconnected", async () => {
  const { socket, passed } = await start("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf");
  await passed();
  expect(survivesTimeout(socket)).toBe(false);
});

test("a client that does not read is disconnected", async () => {
  const { socket, passed } = await start(GET);
  (await passed()).write(Buffer.alloc(50_000_000));
  expect(survivesTimeout(socket)).toBe(false);
});

test.each([
  ["without a body", GET],
  ["whose body waits unread", `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n${"x".repeat(200_000)}`],
])("a client that waits for its turn is not disconnected: a request %s", async (_, sent) => {
  const { socket, asked } = await start(sent);
  await asked;
  expect([survivesTimeout(socket), survivesTimeout(socket)]).toEqual([true, true]);
});
