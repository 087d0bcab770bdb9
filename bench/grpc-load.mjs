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
/** grpc-go resets a stream so behind a whole answer, where it has not yet noted that the request has ended. */
const NO_ERROR = 0;
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

/** What a connection reads into, one turn after the other: answers are read where they lie. */
const READ_BYTES = 65_536;

/** @param {number} port @param {string} host @param {(bytes: Buffer) => void} onBytes with windows that never stop the server */
async function open(port, host, onBytes) {
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  const callback = (/** @type {number} */ length) => {
    onBytes(buffer.subarray(0, length));
    return true;
  };
  const socket = connect({ port, host, noDelay: true, onread: { buffer, callback } });
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
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (bytes.length - at >= 9) {
      const to = at + 9 + ((bytes[at] << 16) | (bytes[at + 1] << 8) | bytes[at + 2]);
      if (to > bytes.length) break;
      const [type, flags] = [bytes[at + 3], bytes[at + 4]];
      if (type <= HEADERS) {
        if ((flags & END_STREAM) !== 0) onAnswer(bytes.readUInt32BE(at + 5));
      } else if (type === SETTINGS && (flags & ACK) === 0) send(frame(SETTINGS, ACK, 0, Buffer.alloc(0)));
      else if (type === PING && (flags & ACK) === 0) send(frame(PING, ACK, 0, bytes.subarray(at + 9, to)));
      else if (type === GOAWAY || (type === RST_STREAM && bytes.readUInt32BE(at + 9) !== NO_ERROR))
        throw new Error(`the server ended a call: ${bytes.toString("hex", at, to)}`);
      at = to;
    }
    // What is left lies in the buffer that the next turn fills.
    rest = at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at));
    flush();
  };
}

const NOTHING = Buffer.alloc(0);

/**
 * A call's frames, whole but for the stream's id, which stands at two places.
 * @param {Buffer} block @param {Buffer} message
 */
function callFrames(block, message) {
  const headers = frame(HEADERS, END_HEADERS, 0, block);
  return { bytes: Buffer.concat([headers, frame(DATA, END_STREAM, 0, message)]), dataAt: headers.length };
}

/**
 * @param {{ host?: string, port: number, count: number, connections: number, inFlight: number, path: string, messages: readonly Buffer[] }} load
 * each message a framed gRPC message; `inFlight` in all
 */
export async function loadFrames({ host = "127.0.0.1", port, count, connections, inFlight, path, messages }) {
  const startedMs = new Float64Array(count);
  const latencies = new Float64Array(count);
  const blocks = headerBlocks(path);
  const calls = messages.map((message) => callFrames(blocks.later, message));
  let sent = 0;
  let answered = 0;
  let finish = () => {};
  /** @type {(error: Error) => void} */
  let fail = () => {};
  const ended = new Promise((resolve, reject) => {
    finish = () => resolve(undefined);
    fail = reject;
  });
  const lane = async () => {
    let streamId = -1;
    /** The call's number, by stream. Streams are odd and begin at 1. @type {number[]} */
    const numbers = [];
    /** @type {Buffer[]} */
    let out = [];
    const next = () => {
      if (sent >= count) return;
      const number = sent++;
      streamId += 2;
      numbers.push(number);
      const at = number % messages.length;
      const call = streamId === 1 ? callFrames(blocks.first, messages[at]) : calls[at];
      const bytes = Buffer.allocUnsafe(call.bytes.length);
      bytes.set(call.bytes);
      bytes.writeUInt32BE(streamId, 5);
      bytes.writeUInt32BE(streamId, call.dataAt + 5);
      out.push(bytes);
      startedMs[number] = performance.now();
    };
    const flush = () => {
      if (out.length === 0) return;
      socket.write(out.length === 1 ? out[0] : Buffer.concat(out));
      out = [];
    };
    const onAnswer = (/** @type {number} */ id) => {
      const number = numbers[id >> 1];
      latencies[number] = performance.now() - startedMs[number];
      if (++answered === count) finish();
      next();
    };
    const read = reader({ onAnswer, send: (bytes) => out.push(bytes), flush });
    const guarded = (/** @type {Buffer} */ bytes) => {
      try {
        read(bytes);
      } catch (error) {
        fail(/** @type {Error} */ (error));
      }
    };
    const socket = await open(port, host, guarded);
    socket.on("error", fail);
    const start = () => {
      for (let i = 0; i < inFlight / connections; i++) next();
      flush();
    };
    return { socket, start };
  };
  const lanes = await Promise.all(Array.from({ length: connections }, lane));
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  for (const { start } of lanes) start();
  await ended;
  const tookMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  for (const { socket } of lanes) socket.destroy();
  return { ...figures(latencies, tookMs), loadUs: (user + system) / count };
}
