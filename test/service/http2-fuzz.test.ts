/**
 * Frames and header blocks at random, whole calls among them: nothing may end the process, hang it, or keep a connection for ever.
 * And h2spec, the conformance suite for HTTP/2 servers. A Go program: it runs where it is installed
 * (`go install github.com/summerwind/h2spec/cmd/h2spec@latest`), or `H2SPEC_BIN` names it.
 */
import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { flags, frameTypes } from "../../packages/server/src/grpc/http2/protocol.js";
import {
  frame,
  HEAD,
  isServing,
  literal,
  MESSAGE,
  number,
  RawPeer,
  type Started,
  startTransport,
  wholeCall,
} from "./http2-peer.js";

/** As many as a run of CI has time for; `SLUICE_TEST_FRAMES` asks for more, `SLUICE_TEST_SEED` for the same. */
const FRAMES = Number(process.env.SLUICE_TEST_FRAMES ?? 20_000);
const SEED = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
const FRAMES_A_CONNECTION = 40;

let service: Started;
beforeAll(async () => {
  service = await startTransport();
});
afterAll(() => service.stop());

const streamId = fc.oneof(fc.constantFrom(0, 1, 2, 3, 5, 7, 2 ** 31 - 1), fc.nat(40));
const bits = fc.oneof(fc.constantFrom(0, 1, 4, 5, 8, 0x20, 0x2d), fc.nat(255));
const payload = fc.oneof(
  fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(
    HEAD,
    MESSAGE,
    Buffer.alloc(0),
    Buffer.alloc(8),
    number(1),
    number(2 ** 31 - 1),
    Buffer.alloc(16_384),
  ),
  fc.tuple(fc.constantFrom(HEAD, MESSAGE), fc.nat(80), fc.nat(255)).map(([bytes, at, value]) => {
    const changed = Buffer.from(bytes);
    changed[at % changed.length] = value;
    return changed;
  }),
  fc.string({ maxLength: 20 }).map((value) => Buffer.concat([HEAD, literal("x-any", value)])),
);
const anyFrame = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.nat(11), marks: bits, id: streamId, bytes: payload }) },
  {
    weight: 2,
    arbitrary: streamId.map((id) => ({ type: frameTypes.headers, marks: flags.endHeaders, id, bytes: HEAD })),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant(0), marks: bits, id: streamId, bytes: payload }) },
  { weight: 1, arbitrary: streamId.map((id) => ({ type: frameTypes.rstStream, marks: 0, id, bytes: number(8) })) },
);

test(`${FRAMES} frames at random (seed ${SEED}) leave the service answering, and every connection that ended by a mistake says which`, async () => {
  const connections = Math.ceil(FRAMES / FRAMES_A_CONNECTION);
  const batches = fc.sample(fc.array(anyFrame, { minLength: FRAMES_A_CONNECTION, maxLength: FRAMES_A_CONNECTION }), {
    numRuns: connections,
    seed: SEED,
  });
  let ended = 0;
  for (const frames of batches) {
    const peer = await RawPeer.connect(service.port);
    for (const { type, marks, id, bytes } of frames) peer.send(frame(type, marks, id, bytes));
    // A ping shows that all was read, and a call that the connection still serves, if it lives.
    peer.send(frame(frameTypes.ping, 0, 0, Buffer.from("the end!")), wholeCall(2 ** 31 - 3));
    const isOver = (): boolean => peer.of(frameTypes.ping).some(({ payload: text }) => text.toString() === "the end!");
    await peer.until(() => isOver() || peer.of(frameTypes.goaway).length > 0).catch(() => undefined);
    if (peer.goaway !== undefined) ended++;
    peer.destroy();
  }
  expect(ended).toBeGreaterThan(0);
  expect(await isServing(service.port)).toBe(true);
  expect(service.mistakes.length).toBeGreaterThanOrEqual(ended);
});

const folders = [...(process.env.PATH ?? "").split(delimiter), join(homedir(), "go", "bin")];
const program = [process.env.H2SPEC_BIN, ...folders.map((folder) => join(folder, "h2spec"))].find(isProgram);

function isProgram(file: string | undefined): file is string {
  if (file === undefined) return false;
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

if (program === undefined) console.log("h2spec is not installed here: its 145 cases are not run");
else {
  test("h2spec finds no failure", async () => {
    const args = ["-h", "127.0.0.1", "-p", String(service.port), "-o", "10"];
    const { stdout } = await promisify(execFile)(program, args).catch((error: { stdout: string }) => error);
    expect(stdout.trim().split("\n").at(-1)).toBe("145 tests, 145 passed, 0 skipped, 0 failed");
  });
}
