/**
 * A TCP proxy that fails on demand, between a client and a server on loopback.
 * In: the server's port. Out: a port to connect to instead, and switches for each way in which a network fails.
 * It knows no protocol: a "request" is what came from the client in one read, a "reply" what came back in one read.
 */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.js";

export interface TcpFaultProxy extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** How many clients are connected now. */
  readonly connections: number;
  /** Added to each round trip, on the way to the server. May be changed at any time. */
  latencyMs: number;
  /** Ends every connection with a reset. New ones are accepted. */
  cut(): void;
  /**
   * While on, connections stay open and are accepted, and every byte is lost, both ways. `from`: only of clients at an address for
   * which it says so.
   */
  blackhole(on: boolean, from?: (address: string) => boolean): void;
  /**
   * From now on the open connections swallow every byte, both ways, and stay open: what a client sees of a peer that rebooted, or of a
   * firewall that forgot the flow. New connections work. Resolves with how many there are.
   */
  halfOpen(): number;
  /** How many connections were accepted so far. */
  readonly accepted: number;
  /**
   * The next request that contains `text` (any request, if absent) reaches the server; its reply does not reach the client, whose
   * connection is cut instead. Resolves when that has happened.
   */
  dropNextReply(text?: string): Promise<void>;
  /**
   * The next request that contains `text` reaches the server twice, as when a network or a client repeats it; the second reply is
   * lost. Resolves when the server has answered both.
   */
  repeatNextRequest(text?: string): Promise<void>;
  /** While on, connecting fails with ECONNREFUSED. Open connections live on. */
  refuse(on: boolean): Promise<void>;
  stop(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  /** Where the client comes from. A socket that has ended no longer tells. */
  readonly address: string;
  readonly server: Socket;
  /** Set from the request whose reply is to be dropped until that reply comes. */
  onReply: (() => void) | undefined;
  lostBytes: boolean;
  /** Half-open: its bytes go nowhere, for good. */
  isMute: boolean;
}

interface Armed {
  readonly text: string;
  readonly done: () => void;
}

export async function startTcpFaultProxy(options: {
  upstreamPort: number;
  latencyMs?: number;
  /** By default a free one. */
  port?: number;
}): Promise<TcpFaultProxy> {
  const links = new Set<Link>();
  let armed: Armed | undefined;
  let repeating: Armed | undefined;
  let accepted = 0;
  let swallows: ((address: string) => boolean) | undefined;

  function accept(client: Socket): void {
    const server = connect({ port: options.upstreamPort, host: "127.0.0.1", noDelay: true });
    const link: Link = {
      client,
      address: client.remoteAddress ?? "",
      server,
      onReply: undefined,
      lostBytes: false,
      isMute: false,
    };
    links.add(link);
    accepted++;
    client.setNoDelay(true);
    // An error is always followed by "close", which ends the other side too; there is nobody to report it to.
    client.on("error", () => undefined);
    server.on("error", () => undefined);
    client.on("close", () => cutLink(link));
    server.on("close", (failed) => {
      if (swallow(link)) return;
      if (failed) cutLink(link);
      // Orderly, so that the server's last words (the reply to QUIT) still arrive.
      else client.end();
    });

    // Sent one after the other, so that bytes keep their order when the latency changes in between.
    let sent: Promise<void> = Promise.resolve();
    client.on("data", (chunk) => {
      if (swallow(link)) return;
      const dueMs = performance.now() + proxy.latencyMs;
      sent = sent.then(async () => {
        const leftMs = dueMs - performance.now();
        if (leftMs > 0) await sleep(leftMs);
        if (swallow(link) || server.destroyed) return;
        if (armed !== undefined && chunk.includes(armed.text)) {
          link.onReply = armed.done;
          armed = undefined;
        }
        if (repeating !== undefined && chunk.includes(repeating.text)) {
          repeat(options.upstreamPort, chunk, repeating.done);
          repeating = undefined;
        }
        server.write(chunk);
      });
    });
    server.on("data", (chunk) => {
      if (swallow(link)) return;
      if (link.onReply === undefined) {
        client.write(chunk);
        return;
      }
      cutLink(link);
      link.onReply();
    });
  }

  function swallow(link: Link): boolean {
    const isLost = link.isMute || swallows?.(link.address) === true;
    if (isLost) link.lostBytes = true;
    return isLost;
  }

  function cutLink(link: Link): void {
    links.delete(link);
    link.server.destroy();
    // A reset rather than an orderly end: that is what a crash or a firewall looks like.
    if (!link.client.destroyed) link.client.resetAndDestroy();
  }

  const port = options.port ?? (await freePort());
  let listener: Server | undefined = await listen(port, accept);

  const proxy: TcpFaultProxy = {
    port,
    url: `redis://127.0.0.1:${port}`,
    get connections() {
      return links.size;
    },
    latencyMs: options.latencyMs ?? 0,
    cut() {
      for (const link of links) cutLink(link);
    },
    blackhole(on, from = () => true) {
      swallows = on ? from : undefined;
      if (on) return;
      // A stream with a hole in it is something that no network delivers.
      for (const link of links) if (link.lostBytes && !link.isMute) cutLink(link);
    },
    halfOpen() {
      for (const link of links) {
        link.isMute = true;
        // The server's side lives on at a peer that is gone; here it is only in the way.
        link.server.destroy();
      }
      return links.size;
    },
    get accepted() {
      return accepted;
    },
    dropNextReply(text = "") {
      return new Promise((resolve) => {
        armed = { text, done: resolve };
      });
    },
    repeatNextRequest(text = "") {
      return new Promise((resolve) => {
        repeating = { text, done: resolve };
      });
    },
    async refuse(on) {
      if (on) {
        // The listening socket closes at once; the callback would wait for the open connections.
        listener?.close();
        listener = undefined;
      } else listener ??= await listen(port, accept);
    },
    async stop() {
      const closing = listener;
      listener = undefined;
      proxy.cut();
      if (closing !== undefined) await new Promise((resolve) => closing.close(resolve));
    },
    [Symbol.asyncDispose]: () => proxy.stop(),
  };
  return proxy;
}

/** On a connection of its own, whose answer nobody reads. */
function repeat(port: number, chunk: Buffer, done: () => void): void {
  const again = connect({ port, host: "127.0.0.1" });
  again.on("error", () => done());
  again.once("data", () => {
    again.destroy();
    done();
  });
  again.write(chunk);
}

async function listen(port: number, accept: (client: Socket) => void): Promise<Server> {
  const server = createServer(accept);
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return server;
}
