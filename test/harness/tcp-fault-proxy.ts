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
   * As `dropNextReply`, but the client reads the first `bytes` of the reply before the reset (a write with linger 0 behind it).
   * Resolves when the reset was sent.
   */
  cutNextReply(bytes: number, text?: string): Promise<void>;
  /** While set, replies reach clients in pieces of so many bytes, one each so many milliseconds. */
  trickle: { readonly bytes: number; readonly everyMs: number } | undefined;
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
  /** Set from the request whose reply is to be dropped, or cut, until that reply comes. */
  onReply: Armed | undefined;
  lostBytes: boolean;
  /** Half-open: its bytes go nowhere, for good. */
  isMute: boolean;
  /** Its replies have trickled: later ones queue behind. */
  isSlow: boolean;
}

interface Armed {
  readonly text: string;
  /** How much of the reply still arrives. */
  readonly bytes?: number;
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
      isSlow: false,
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
          link.onReply = armed;
          armed = undefined;
        }
        if (repeating !== undefined && chunk.includes(repeating.text)) {
          repeat(options.upstreamPort, chunk, repeating.done);
          repeating = undefined;
        }
        server.write(chunk);
      });
    });
    let replied: Promise<void> = Promise.resolve();
    server.on("data", (chunk) => {
      if (swallow(link)) return;
      if (link.onReply !== undefined) {
        const { bytes = 0, done } = link.onReply;
        link.onReply = undefined;
        void cutAfter(link, chunk.subarray(0, bytes)).then(done);
      } else if (proxy.trickle === undefined && !link.isSlow) client.write(chunk);
      else {
        link.isSlow = true;
        replied = replied.then(() => trickleOut(link, chunk));
      }
    });
  }

  /** What follows the piece is lost with the connection. */
  async function cutAfter(link: Link, piece: Buffer): Promise<void> {
    link.isMute = true;
    if (piece.length > 0) {
      await new Promise((resolve) => link.client.write(piece, resolve));
      // Read before the reset arrives, which may discard what was not.
      await sleep(5);
    }
    cutLink(link);
  }

  /** Bytes that come meanwhile queue behind, in order, and hurry once the fault is over. */
  async function trickleOut(link: Link, chunk: Buffer): Promise<void> {
    let at = 0;
    while (at < chunk.length && !link.client.destroyed) {
      const { bytes, everyMs } = proxy.trickle ?? { bytes: chunk.length, everyMs: 0 };
      if (everyMs > 0) await sleep(everyMs);
      link.client.write(chunk.subarray(at, at + bytes));
      at += bytes;
    }
  }

  function swallow(link: Link): boolean {
    const isLost = link.isMute || swallows?.(link.address) === true;
    if (isLost) link.lostBytes = true;
    return isLost;
  }

  function cutLink(link: Link): void {
    links.delete(link);
    // A client that gave the connection up first has lost the reply as well.
    link.onReply?.done();
    link.onReply = undefined;
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
    cutNextReply(bytes, text = "") {
      return new Promise((resolve) => {
        armed = { text, bytes, done: resolve };
      });
    },
    trickle: undefined,
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
