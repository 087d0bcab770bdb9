/**
 * Load for gRPC servers: HTTP/2 frames made beforehand, answers counted by their last frame. Leaner than any client library, so that the
 * server is what is measured.
 * In: an address and messages. Out: requests a second and latencies.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { figures } from "./service-load.mjs";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;
/** More than a run receives. */
const WINDOW = 2 ** 30;

/** @param {number} type @param {number} flags @param {number} streamId @param {Buffer} payload */
function frame(type, flags, streamId, payload) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** @param {string} name @param {string} value a literal that the server adds to its table */
function literal(name, value) {
  const bytes = [
    Buffer.of(0x40),
    Buffer.of(name.length),
    Buffer.from(name),
    Buffer.of(value.length),
    Buffer.from(value),
  ];
  return Buffer.concat(bytes);
}

/** The first request fills the server's table; later ones name its entries, as real clients do. @param {string} path */
function headerBlocks(path) {
  const fields = [
    [":path", path],
    [":authority", "127.0.0.1"],
    ["te", "trailers"],
    ["content-type", "application/grpc"],
  ];
  // POST and http are in everybody's table: 3 and 6. The newest entry of ours is 62.
  const first = Buffer.concat([
    Buffer.of(0x83, 0x86),
    ...fields.map(([name = "", value = ""]) => literal(name, value)),
  ]);
  const later = Buffer.of(0x83, 0x86, ...fields.map((_, i) => 0x80 | (61 + fields.length - i)));
  return { first, later };
}

/** @param {number} port @param {string} host with windows that never stop the server */
async function open(port, host) {
  const socket = connect({ port, host, noDelay: true });
  await once(socket, "connect");
  const settings = Buffer.alloc(6);
  settings.writeUInt16BE(4, 0);
  settings.writeUInt32BE(WINDOW, 2);
  socket.write(
    Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, settings), frame(WINDOW_UPDATE, 0, 0, settings.subarray(2))]),
  );
  return socket;
}

/**
 * Answers what the protocol asks for, and calls `onAnswer` with the stream of each answer that is whole.
 * @param {{ onAnswer: (streamId: number) => void, send: (bytes: Buffer) => void, flush: () => void }} events
 */
function reader({ onAnswer, send, flush }) {
  let rest = Buffer.alloc(0);
  return (/** @type {Buffer} */ chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (rest.length - at >= 9) {
      const to = at + 9 + rest.readUIntBE(at, 3);
      if (to > rest.length) break;
      const [type, flags, id] = [rest[at + 3] ?? 0, rest[at + 4] ?? 0, rest.readUInt32BE(at + 5)];
      if (type === SETTINGS && (flags & ACK) === 0) send(frame(SETTINGS, ACK, 0, Buffer.alloc(0)));
      if (type === PING && (flags & ACK) === 0) send(frame(PING, ACK, 0, rest.subarray(at + 9, to)));
      if (type === RST_STREAM || type === GOAWAY)
        throw new Error(`the server ended a call: ${rest.toString("hex", at, to)}`);
      if (type <= HEADERS && (flags & END_STREAM) !== 0) onAnswer(id);
      at = to;
    }
    rest = rest.subarray(at);
    flush();
  };
}

/**
 * @param {{ host?: string, port: number, count: number, connections: number, inFlight: number, path: string, messages: readonly Buffer[] }} load
 * each message a framed gRPC message; `inFlight` in all
 */
export async function loadFrames({ host = "127.0.0.1", port, count, connections, inFlight, path, messages }) {
  const latencies = new Float64Array(count);
  const blocks = headerBlocks(path);
  let sent = 0;
  let answered = 0;
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port, host)));
  const startMs = performance.now();
  await new Promise((resolve, reject) => {
    for (const socket of sockets) {
      let streamId = -1;
      /** @type {Map<number, { number: number, startedMs: number }>} */
      const calls = new Map();
      /** @type {Buffer[]} */
      let out = [];
      const next = () => {
        if (sent >= count) return;
        const number = sent++;
        streamId += 2;
        calls.set(streamId, { number, startedMs: performance.now() });
        const block = streamId === 1 ? blocks.first : blocks.later;
        const message = messages[number % messages.length] ?? Buffer.alloc(0);
        out.push(frame(HEADERS, END_HEADERS, streamId, block), frame(DATA, END_STREAM, streamId, message));
      };
      const flush = () => {
        if (out.length > 0) socket.write(Buffer.concat(out));
        out = [];
      };
      const onAnswer = (/** @type {number} */ id) => {
        const call = calls.get(id);
        if (call === undefined) return;
        calls.delete(id);
        latencies[call.number] = performance.now() - call.startedMs;
        if (++answered === count) resolve(undefined);
        next();
      };
      socket.on("data", reader({ onAnswer, send: (bytes) => out.push(bytes), flush }));
      socket.on("error", reject);
      for (let lane = 0; lane < inFlight / connections; lane++) next();
      flush();
    }
  });
  const tookMs = performance.now() - startMs;
  for (const socket of sockets) socket.destroy();
  return figures(latencies, tookMs);
}
