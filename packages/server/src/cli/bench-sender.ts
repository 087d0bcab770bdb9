/**
 * Sends checks to a service over keep-alive connections, each with a deadline. Does not follow redirects or use proxies from the
 * environment: the load goes to the named server, or nowhere.
 */
import { Agent as HttpAgent, type RequestOptions, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";

export type SenderAnswer =
  | { readonly status: number; readonly text: string }
  | { readonly failure: NodeJS.ErrnoException; readonly isTimeout: boolean };

/** Decisions have a few hundred bytes. */
const MOST_CHARACTERS = 1_000_000;

export interface CheckSender {
  /** Never rejects. */
  send(body: string): Promise<SenderAnswer>;
  /** Aborts requests in flight. */
  close(): void;
}

export function checkSender(options: {
  readonly server: string;
  readonly token: string | undefined;
  readonly connections: number;
  readonly timeoutMs: number;
}): CheckSender {
  const { server, token, connections, timeoutMs } = options;
  const url = new URL("/v1/check", server);
  const isTls = url.protocol === "https:";
  const agent = new (isTls ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: connections });
  const request = isTls ? requestHttps : requestHttp;
  const headers = {
    "content-type": "application/json",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const send = (body: string): Promise<SenderAnswer> =>
    new Promise((done) => {
      let isTimeout = false;
      const sent: RequestOptions = {
        method: "POST",
        agent,
        headers: { ...headers, "content-length": Buffer.byteLength(body) },
      };
      const asked = request(url, sent, (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (part: string) => {
          text += part;
          if (text.length > MOST_CHARACTERS) asked.destroy(new Error("answer too large"));
        });
        answer.on("end", () => end({ status: answer.statusCode ?? 0, text }));
        answer.on("error", fail);
      });
      const deadline = setTimeout(() => {
        isTimeout = true;
        asked.destroy(new Error("timeout"));
      }, timeoutMs);
      const end = (answer: SenderAnswer): void => {
        clearTimeout(deadline);
        done(answer);
      };
      const fail = (failure: NodeJS.ErrnoException): void => end({ failure, isTimeout });
      asked.on("error", fail);
      asked.end(body);
    });
  return { send, close: () => agent.destroy() };
}
