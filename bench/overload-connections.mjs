/**
 * Connections of the load generator of `overload-real.mjs`: one request at a time on each, kept alive. As little HTTP as the servers there need
 * (answers with a Content-Length): a generator that costs as much as the server would be what is measured.
 */
import { connect } from "node:net";

/** Beyond so many, requests fail at once: the server has taken on more than it will ever answer. */
const MOST_CONNECTIONS = 4_000;

export class Connections {
  #port;
  #free = [];
  #all = new Set();

  constructor(port) {
    this.#port = port;
  }

  /** `onAnswer`: the status; 0 where the connection was lost or none is left. */
  send(text, onAnswer) {
    const connection = this.#free.pop() ?? this.#open();
    if (connection === undefined) onAnswer(0);
    else connection.send(text, onAnswer);
  }

  close() {
    for (const connection of this.#all) connection.close();
  }

  #open() {
    if (this.#all.size >= MOST_CONNECTIONS) return undefined;
    const connection = new Connection(this.#port, {
      onFree: () => this.#free.push(connection),
      onLost: () => {
        this.#all.delete(connection);
        this.#free = this.#free.filter((other) => other !== connection);
      },
    });
    this.#all.add(connection);
    return connection;
  }
}

class Connection {
  #socket;
  #received = "";
  #onAnswer;
  #onFree;

  constructor(port, { onFree, onLost }) {
    this.#onFree = onFree;
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true }).setEncoding("latin1");
    this.#socket.on("data", (text) => this.#read(text));
    // "close" follows.
    this.#socket.on("error", () => undefined);
    this.#socket.once("close", () => {
      onLost();
      this.#answer(0);
    });
  }

  send(text, onAnswer) {
    this.#onAnswer = onAnswer;
    this.#socket.write(text);
  }

  close() {
    this.#socket.destroy();
  }

  #read(text) {
    this.#received += text;
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#received)?.[1] ?? 0);
    if (this.#received.length < headEnd + 4 + length) return;
    const status = Number(this.#received.slice(9, 12));
    this.#received = "";
    this.#onFree();
    this.#answer(status);
  }

  #answer(status) {
    const onAnswer = this.#onAnswer;
    this.#onAnswer = undefined;
    onAnswer?.(status);
  }
}
