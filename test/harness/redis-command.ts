/**
 * One command to a Redis on loopback, on a connection of its own, answered as redis-cli prints it to a pipe.
 * In: words. Out: text; rejects on an error reply, a closed connection or silence.
 * Not redis-cli itself: a test process of some hundred megabytes takes 20 ms of processor time to start a child,
 * and a table of 700 schedules that flushes three servers before each starts 2000.
 */
import { connect } from "node:net";

const SILENCE_MS = 10_000;

export async function redisCommand(port: number, words: readonly string[]): Promise<string> {
  const request = `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
  return await new Promise((resolve, reject) => {
    const what = words.join(" ").slice(0, 100);
    const socket = connect(port, "127.0.0.1");
    const chunks: Buffer[] = [];
    const settle = (error: Error | undefined, text = ""): void => {
      socket.destroy();
      if (error === undefined) resolve(text);
      else reject(error);
    };
    socket.setTimeout(SILENCE_MS, () => settle(new Error(`${what}: no reply within ${SILENCE_MS} ms`)));
    socket.on("error", (error) => settle(new Error(`${what}: ${error.message}`)));
    socket.on("close", () => settle(new Error(`${what}: the connection closed before the reply`)));
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      const reply = readReply(Buffer.concat(chunks), 0);
      if (reply === undefined) return;
      settle(reply.isError ? new Error(`${what}: ${reply.text}`) : undefined, reply.text);
    });
    socket.write(request);
  });
}

interface Reply {
  readonly text: string;
  readonly isError: boolean;
  /** Where the next reply begins. */
  readonly end: number;
}

/** A RESP2 reply as text: entries of arrays, nested ones too, are lines; null is empty. Undefined until all of it is there. */
export function readReply(bytes: Buffer, at: number): Reply | undefined {
  const lineEnd = bytes.indexOf("\r\n", at);
  if (lineEnd < 0) return undefined;
  const type = String.fromCharCode(bytes[at]!);
  const line = bytes.toString("utf8", at + 1, lineEnd);
  const next = lineEnd + 2;
  if (type === "+" || type === ":" || type === "-") return { text: line, isError: type === "-", end: next };
  const length = Number(line);
  if (type === "$") {
    if (length < 0) return { text: "", isError: false, end: next };
    const end = next + length + 2;
    return bytes.length < end ? undefined : { text: bytes.toString("utf8", next, end - 2), isError: false, end };
  }
  if (type !== "*") throw new Error(`not a RESP2 reply: ${type}${line}`);
  const lines: string[] = [];
  let end = next;
  let isError = false;
  for (let i = 0; i < length; i++) {
    const entry = readReply(bytes, end);
    if (entry === undefined) return undefined;
    lines.push(entry.text);
    end = entry.end;
    isError ||= entry.isError;
  }
  return { text: lines.join("\n"), isError, end };
}
