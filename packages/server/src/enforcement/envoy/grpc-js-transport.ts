/**
 * grpc-js as the gRPC transport (`--grpc-transport grpc-js`): far slower, but the library that most Node services use.
 * Its HTTP/2 servers are reached through a private field, as it does not expose them.
 */
import type { Http2Server, ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { Server } from "@grpc/grpc-js";
import { sendDeadline } from "./grpc-bounds.js";
import { credentialsOf } from "./grpc-credentials.js";
import { announceEnd } from "./grpc-goodbye.js";
import type { Transport, TransportOptions } from "./grpc-server.js";
import { HalfSentCalls } from "./half-sent-calls.js";
import { QUOTA_PATH } from "./quota/quota-messages.js";

/** Each call in flight holds memory; further calls wait at the client. */
const MOST_CALLS_PER_CONNECTION = 1_000;

export function openGrpcJs({ tls, sendWithinMs, mostMessageBytes, halfSent: bounds }: TransportOptions): Transport {
  const server = new Server({
    "grpc.max_receive_message_length": mostMessageBytes,
    "grpc.keepalive_time_ms": 60_000,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.max_concurrent_streams": MOST_CALLS_PER_CONNECTION,
    interceptors: [sendDeadline(sendWithinMs, [QUOTA_PATH])],
    // Turns off per-call statistics that nothing here reads.
    "grpc.enable_channelz": 0,
  });
  const injector = server.createConnectionInjector(credentialsOf(tls));
  const halfSent = new HalfSentCalls(bounds);
  for (const http2 of http2Of(server).keys()) halfSent.watch(http2);
  const sockets = new Set<Socket>();
  return {
    addService: (definition, implementation) => server.addService(definition, implementation),
    injectConnection(socket) {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      injector.injectConnection(socket);
    },
    async drain({ timeoutMs }) {
      if (tls === undefined) await announceEnds(sessionsOf(server), sockets);
      // Without channelz grpc-js does not track its sessions, so its forced shutdown would wait for clients that never read.
      const insist = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, timeoutMs);
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      clearTimeout(insist);
      server.forceShutdown();
    },
  };
}

/** An HTTP/2 session does not expose its raw socket, so match them by remote address and port. */
async function announceEnds(sessions: readonly ServerHttp2Session[], sockets: Iterable<Socket>): Promise<void> {
  const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  const byName = new Map(Array.from(sockets, (socket) => [nameOf(socket), socket]));
  const ends = sessions.map((session) => {
    const socket = session.destroyed ? undefined : byName.get(nameOf(session.socket as Socket));
    return socket && announceEnd(session, socket);
  });
  await Promise.all(ends);
}

function sessionsOf(server: Server): ServerHttp2Session[] {
  return [...http2Of(server).values()].flatMap(({ sessions }) => [...sessions]);
}

function http2Of(server: Server): ReadonlyMap<Http2Server, { readonly sessions: ReadonlySet<ServerHttp2Session> }> {
  return (server as unknown as { http2Servers: ReturnType<typeof http2Of> }).http2Servers;
}
