/** The memory of the gateway does not depend on what passes through it: a stream of 100 MB, a line of 50 MB, a client that does not read. */

import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServiceProcess, startServiceProcess } from "../service/running-service.js";

const MB = 1_000_000;
const event = Buffer.from(
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "x".repeat(2_000) } }], usage: null })}\n\n`,
);
const lastEvent = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":7}}\n\ndata: [DONE]\n\n';

/** By the model: events of 2 KB, or one event of one line, of so many megabytes. */
function answerTo(model: string): { head: string; piece: Buffer; tail: string; pieces: number } {
  const megabytes = Number(/\d+/.exec(model)![0]);
  if (model.startsWith("events")) {
    return { head: "", piece: event, tail: lastEvent, pieces: Math.ceil((megabytes * MB) / event.length) };
  }
  const head = 'data: {"choices":[{"delta":{"content":"';
  const piece = Buffer.alloc(64 * 1024, "x");
  return { head, piece, tail: `"}}]}\n\n${lastEvent}`, pieces: Math.ceil((megabytes * MB) / piece.length) };
}

/** Or closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      response.off("drain", end).off("close", end);
      resolve();
    };
    response.on("drain", end).on("close", end);
  });
}

let vendor: Server;
let service: ServiceProcess;

beforeAll(async () => {
  vendor = createServer(async (call, response) => {
    response.on("error", () => undefined);
    let text = "";
    for await (const chunk of call) text += chunk;
    const { head, piece, tail, pieces } = answerTo((JSON.parse(text) as { model: string }).model);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(head);
    for (let i = 0; i < pieces && !response.destroyed; i++) {
      if (!response.write(piece)) await drained(response);
    }
    response.end(tail);
  });
  await new Promise<void>((resolve) => vendor.listen(0, "127.0.0.1", resolve));
  service = await startServiceProcess({
    rules: [
      {
        id: "tokens",
        key: [],
        algorithm: "token-bucket",
        limit: 1_000_000_000,
        window: "1d",
        cost: { attribute: "completion_tokens" },
        estimate: { default: 1 },
      },
    ],
    settings: { upstream: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`, usage: "openai" },
  });
});
afterAll(async () => {
  await service.end();
  vendor.closeAllConnections();
  vendor.close();
});

async function open(model: string): Promise<IncomingMessage> {
  const call = request(`${service.proxy}/v1/chat/completions`, { method: "POST" });
  call.end(JSON.stringify({ model, stream: true }));
  const [answer] = (await once(call, "response")) as [IncomingMessage];
  return answer;
}

/** Reads so many bytes, then no more: the rest waits wherever there is room for it. */
async function read(answer: IncomingMessage, bytes: number): Promise<number> {
  let count = 0;
  for await (const chunk of answer.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    count += chunk.length;
    if (count >= bytes) break;
  }
  return count;
}

/** The buffers of four streams and four sockets. */
const MOST_GROWTH_MB = 4;

test.each(["events-100", "line-50"])(
  "in the middle of %s MB, and at its end, no more is reachable than before",
  async (model) => {
    await read(await open("events-1"), Number.POSITIVE_INFINITY);
    const beforeMb = await service.liveMb();
    const answer = await open(model);
    const size = Number(/\d+/.exec(model)![0]) * MB;
    const half = await read(answer, size / 2);
    const middleMb = await service.liveMb();
    const rest = await read(answer, Number.POSITIVE_INFINITY);
    const endMb = await service.liveMb();
    console.log(
      `${model}: ${beforeMb.toFixed(1)} MB before, ${middleMb.toFixed(1)} in the middle, ${endMb.toFixed(1)} behind it`,
    );
    expect(half + rest).toBeGreaterThanOrEqual(size);
    expect(middleMb - beforeMb).toBeLessThan(MOST_GROWTH_MB);
    expect(endMb - beforeMb).toBeLessThan(MOST_GROWTH_MB);
  },
);

test("twenty clients that do not read hold buffers, not answers", async () => {
  await read(await open("events-1"), Number.POSITIVE_INFINITY);
  const beforeMb = await service.liveMb();
  const answers = await Promise.all(Array.from({ length: 20 }, () => open("events-30")));
  await Promise.all(answers.map((answer) => read(answer, 1)));
  const heldMb = await service.liveMb();
  console.log(`20 clients that do not read 30 MB each: ${(heldMb - beforeMb).toFixed(1)} MB`);
  expect(heldMb - beforeMb).toBeLessThan(20);
  for (const answer of answers) answer.destroy();
});
