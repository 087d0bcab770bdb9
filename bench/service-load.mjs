/**
 * Load for the service's benchmark over HTTP/1.1, lean enough not to be what is measured: raw sockets. gRPC's is `grpc-load.mjs`.
 * In: a port and messages. Out: requests a second and latencies.
 */
import { once } from "node:events";
import { connect } from "node:net";

/** @typedef {{ port: number, count: number, connections: number, messages: readonly Buffer[] }} Load */

/** @param {Load} load each message a whole HTTP request; one at a time on each connection */
export async function loadHttp({ port, count, connections, messages }) {
  const latencies = new Float64Array(count);
  let sent = 0;
  let answered = 0;
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      await once(socket, "connect");
      return socket;
    }),
  );
  const startMs = performance.now();
  await new Promise((resolve, reject) => {
    for (const socket of sockets) {
      let number = 0;
      let startedMs = 0;
      let expected = 0;
      let received = 0;
      const next = () => {
        if (sent >= count) return;
        number = sent++;
        expected = 0;
        received = 0;
        startedMs = performance.now();
        socket.write(messages[number % messages.length]);
      };
      socket.on("data", (chunk) => {
        if (expected === 0) {
          const head = chunk.toString("latin1");
          if (!head.startsWith("HTTP/1.1 200")) return reject(new Error(head.slice(0, 200)));
          const bodyAt = head.indexOf("\r\n\r\n") + 4;
          expected = bodyAt + Number(/content-length: (\d+)/i.exec(head)?.[1]);
        }
        received += chunk.length;
        if (received < expected) return;
        latencies[number] = performance.now() - startedMs;
        if (++answered === count) resolve(undefined);
        else next();
      });
      socket.on("error", reject);
      next();
    }
  });
  const tookMs = performance.now() - startMs;
  for (const socket of sockets) socket.destroy();
  return figures(latencies, tookMs);
}

/**
 * @param {Float64Array} latencies
 * @param {number} tookMs
 */
export function figures(latencies, tookMs) {
  const count = latencies.length;
  latencies.sort();
  return {
    perSecond: (count / tookMs) * 1000,
    p50Us: (latencies[Math.floor(count * 0.5)] ?? 0) * 1000,
    p99Us: (latencies[Math.floor(count * 0.99)] ?? 0) * 1000,
  };
}
