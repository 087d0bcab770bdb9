/**
 * As much of the WebSocket protocol (RFC 6455) as the example next to it needs: text of up to 64 KB, close frames. Node 20 has neither
 * side built in. In a program, take `ws`: the events and `close(code, reason)` are called the same there.
 */
import { createHash, randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { request } from "node:http";

const TEXT = 1;
const CLOSE = 8;

class Socket extends EventEmitter {
  #stream;
  #masks;
  #buffered = Buffer.alloc(0);

  constructor(stream, { masks }) {
    super();
    this.#stream = stream;
    this.#masks = masks;
    stream.on("data", (chunk) => this.#read(chunk));
    stream.on("error", () => stream.destroy());
    stream.on("close", () => this.emit("close", this.closeCode ?? 1006));
  }

  send(text) {
    this.#write(TEXT, Buffer.from(text));
  }

  close(code = 1000, reason = "") {
    const payload = Buffer.concat([Buffer.alloc(2), Buffer.from(reason)]);
    payload.writeUInt16BE(code);
    this.#write(CLOSE, payload);
    this.#stream.end();
  }

  #write(kind, payload) {
    if (!this.#stream.writable) return;
    const mask = this.#masks ? randomBytes(4) : Buffer.alloc(0);
    const head = Buffer.from(
      payload.length < 126
        ? [0x80 | kind, payload.length]
        : [0x80 | kind, 126, payload.length >> 8, payload.length & 255],
    );
    if (this.#masks) head[1] |= 0x80;
    this.#stream.write(Buffer.concat([head, mask, this.#masks ? masked(payload, mask) : payload]));
  }

  #read(chunk) {
    this.#buffered = Buffer.concat([this.#buffered, chunk]);
    for (;;) {
      const data = this.#buffered;
      if (data.length < 2) return;
      const isLong = (data[1] & 127) === 126;
      const isMasked = data[1] >= 128;
      const start = (isLong ? 4 : 2) + (isMasked ? 4 : 0);
      if (data.length < start) return;
      const end = start + (isLong ? data.readUInt16BE(2) : data[1] & 127);
      if (data.length < end) return;
      const payload = isMasked
        ? masked(data.subarray(start, end), data.subarray(start - 4, start))
        : data.subarray(start, end);
      this.#buffered = data.subarray(end);
      if ((data[0] & 15) === TEXT) this.emit("message", payload);
      else if (payload.length >= 2) {
        this.closeCode = payload.readUInt16BE();
        this.#stream.end();
      }
    }
  }
}

const masked = (payload, mask) => payload.map((byte, i) => byte ^ mask[i % 4]);

/** The server's side of an `upgrade` event. */
export function accept(req, stream) {
  const key = createHash("sha1").update(`${req.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  const head = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key.digest("base64")}`;
  stream.write(`HTTP/1.1 101 Switching Protocols\r\n${head}\r\n\r\n`);
  return new Socket(stream, { masks: false });
}

/** The client's side: a socket, or the status of the refusal. */
export async function connect(url, headers) {
  const asked = request(url, {
    headers: {
      ...headers,
      upgrade: "websocket",
      connection: "Upgrade",
      "sec-websocket-version": "13",
      "sec-websocket-key": randomBytes(16).toString("base64"),
    },
  });
  asked.end();
  const answered = await Promise.race([
    once(asked, "upgrade").then(([, stream]) => new Socket(stream, { masks: true })),
    once(asked, "response").then(([response]) => response.resume().statusCode),
  ]);
  return answered;
}
