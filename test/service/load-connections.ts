/**
 * A plain HTTP/1.1 client for load: a few connections that are kept, one request at a time on each.
 * Node's fetch costs several times what the service does, and would be what is measured.
 */
import { Agent, type IncomingHttpHeaders, request } from "node:http";

export interface LoadAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export class LoadConnections {
  readonly #agent: Agent;
  readonly #url: URL;

  constructor({ url, count }: { url: string; count: number }) {
    this.#url = new URL(url);
    this.#agent = new Agent({ keepAlive: true, maxSockets: count });
  }

  /** `headers`: lines, each with its end. Rejects if the connection breaks before the answer is whole. */
  send(
    method: string,
    path: string,
    { headers = "", body }: { headers?: string; body?: string } = {},
  ): Promise<LoadAnswer> {
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          agent: this.#agent,
          host: this.#url.hostname,
          port: this.#url.port,
          method,
          path,
          headers: {
            ...Object.fromEntries(
              headers
                .split("\r\n")
                .filter(Boolean)
                .map((line) => line.split(/: /, 2)),
            ),
            ...(body !== undefined && {
              "content-type": "application/json",
              "content-length": Buffer.byteLength(body),
            }),
          },
        },
        (answer) => {
          let text = "";
          answer.setEncoding("utf8");
          answer.on("data", (chunk: string) => {
            text += chunk;
          });
          answer.on("end", () => resolve({ status: answer.statusCode!, headers: answer.headers, body: text }));
          answer.on("error", reject);
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
