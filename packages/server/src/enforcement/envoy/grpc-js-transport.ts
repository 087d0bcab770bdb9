/**
 * grpc-js as the carrier of the calls (`--grpc-transport grpc-js`): slower by far, and the library that most Node services use.
 * It keeps some of what we need to itself: its HTTP/2 servers are reached through a private field.
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

/** Each that is under way holds memory; more wait at the client until one ends. */
const MOST_CALLS_PER_CONNECTION = 1_000;

export function openGrpcJs({ tls, sendWithinMs, mostMessageBytes, halfSent: bounds }: TransportOptions): Transport {
  const server = new Server({
    "grpc.max_receive_message_length": mostMessageBytes,
    "grpc.keepalive_time_ms": 60_000,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.max_concurrent_streams": MOST_CALLS_PER_CONNECTION,
    interceptors: [sendDeadline(sendWithinMs, [QUOTA_PATH])],
    // Statistics per call that have no reader here; metrics count the requests.
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
      // Without channelz grpc-js forgets its sessions, and a forced end of its own would wait for clients that never read.
      const insist = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, timeoutMs);
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      clearTimeout(insist);
      server.forceShutdown();
    },
  };
}

/** A session does not let its socket be written to: it is found by its port. */
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
