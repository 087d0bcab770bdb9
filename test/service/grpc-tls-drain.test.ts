/** The end of a gRPC transport with TLS: who is still shaking hands is answered; who is silent holds nobody up. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { beforeAll, describe, expect, test } from "vitest";
import { GrpcTransport } from "../../packages/server/src/grpc/transport.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeCertificate } from "../harness/certificates.js";

const PREFACE = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  Buffer.from("000000040000000000", "hex"),
]);
const SETTINGS = 4;

describe.skipIf(whyMissing("openssl"))("a drain over TLS", () => {
  let tls: { cert: Buffer; key: Buffer };
  beforeAll(() => {
    const { certFile, keyFile } = makeCertificate();
    tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  });

  /** A client whose connection stands, and has sent nothing. */
  async function connected(handshakesWithinMs: number): Promise<{ transport: GrpcTransport; client: Socket }> {
    const transport = new GrpcTransport({ mostMessageBytes: 1_000, sendWithinMs: 60_000, tls, handshakesWithinMs });
    const server = createServer((socket) => transport.injectConnection(socket)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    await Promise.all([once(server, "connection"), once(client, "connect")]);
    server.close();
    return { transport, client };
  }

  test("answers a connection whose handshake had not begun, and ends only then", async () => {
    const { transport, client: late } = await connected(60_000);
    let isOver = false;
    const drained = transport.drain({ timeoutMs: 60_000 }).then(() => {
      isOver = true;
    });
    const client = connectTls({ socket: late, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    await once(client, "secureConnect");
    client.write(PREFACE);
    const [bytes] = (await once(client, "data")) as [Buffer];
    // The type of a frame is its fourth byte.
    expect(bytes[3]).toBe(SETTINGS);
    expect(isOver).toBe(false);
    client.destroy();
    await drained;
  });

  test("is not held up by a connection that is silent", async () => {
    const { transport, client } = await connected(10);
    await transport.drain({ timeoutMs: 60_000 });
    client.destroy();
  });
});
