/**
 * One attempt to deliver a message: resolves the name, checks the address, connects to that very address, and reads no more than the
 * status. Redirects are not followed. Its deadline holds whatever the other side does.
 */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { type Address, allowedAddress, type Resolve } from "./public-address.js";

interface Post {
  readonly url: URL;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean;
  readonly resolve: Resolve;
  readonly deadlineMs: number;
}

/** `retry`: whether another attempt could succeed. */
export class PostFailed extends Error {
  readonly retry: boolean;

  constructor(message: string, { retry }: { retry: boolean }) {
    super(message);
    this.retry = retry;
  }
}

export async function postOnce(post: Post): Promise<void> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), post.deadlineMs);
  const late = new Promise<never>((_, reject) => {
    abort.signal.addEventListener("abort", () =>
      reject(new PostFailed(`no answer within ${post.deadlineMs} ms`, { retry: true })),
    );
  });
  try {
    const status = await Promise.race([late, send(post, abort.signal)]);
    if (status >= 200 && status < 300) return;
    if (status >= 300 && status < 400)
      throw new PostFailed(`answered ${status}: redirects are not followed`, { retry: false });
    throw new PostFailed(`answered ${status}`, { retry: status >= 500 || status === 408 || status === 429 });
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

async function send(post: Post, signal: AbortSignal): Promise<number> {
  const { url, allowPrivate, resolve } = post;
  const address = await allowedAddress(url.hostname, { resolve, allowPrivate });
  if (signal.aborted) throw new PostFailed("too late", { retry: true });
  return await exchange(post, address, signal);
}

function exchange({ url, body, headers }: Post, { address, family }: Address, signal: AbortSignal): Promise<number> {
  const request = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: "POST",
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
      agent: false,
      signal,
      // Connects to the checked address, whatever the name resolves to by now (DNS rebinding). Host header and TLS still use the name.
      lookup: (_hostname, options, done) =>
        options.all ? done(null, [{ address, family }]) : done(null, address, family),
    });
    sent.on("response", (response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    sent.on("error", (error) => reject(new PostFailed(describe(error), { retry: true })));
    sent.end(body);
  });
}

function describe(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
