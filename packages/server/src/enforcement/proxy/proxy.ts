/**
 * The reverse proxy (`--upstream`): every request is checked, then forwarded or refused. It has its own port, so that none of our paths
 * shadows one of the upstream's, and upstream clients cannot reach the data plane.
 *
 * Built on node:http rather than a library: of the maintained ones, some rebuild WebSockets instead of forwarding them, others forward
 * hop-by-hop fields and h2c upgrades untouched, and the lease must follow every way in which a response can end.
 *
 * Against request smuggling: Node's strict parser refuses Content-Length with Transfer-Encoding, two lengths, and bare line ends; bodies
 * are re-framed towards the upstream; `normalise-request.ts` refuses the rest. Against slow peers: `proxyBounds`.
 */
import { type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Attributes, Decision, Limiter } from "sluice";
import { answerOf, type HeadersOption } from "sluice/http";
import { ClientLeft, holdReservation } from "sluice/internal";
import { boundedServer } from "../../http/bounded-server.js";
import { answerClientError } from "../../http/client-error.js";
import { isClosing } from "../../http/drain.js";
import { lingerAfter } from "../../http/lingering-close.js";
import { internalProblem, type Problem, problem, problemOf } from "../../http/problem.js";
import type { TlsFiles } from "../../http/tls-files.js";
import { writeLastProblem } from "../../http/write-problem.js";
import type { Log } from "../../log.js";
import type { Observe, RequestObserver } from "../../monitoring/observe-requests.js";
import type { RequestAttributes } from "../attributes/request-attributes.js";
import { holdLease } from "./held-lease.js";
import { closeIdleClients } from "./idle-clients.js";
import { hasNoBody } from "./message-headers.js";
import { normaliseRequest } from "./normalise-request.js";
import { passRequest } from "./pass-request.js";
import { isWebSocket, passUpgrade, responseHead } from "./pass-upgrade.js";
import { createUpstream, type Upstream } from "./upstream.js";
import type { LlmCall, LlmGateway } from "./usage/llm-gateway.js";
import { type FieldsForm, type JsonAnswer, vendorAnswer, vendorError } from "./usage/vendor-answers.js";

interface ProxyOptions {
  readonly upstream: string;
  readonly upstreamHeaders: Readonly<Record<string, string>>;
  /** An upstream that is silent for this long is considered dead. */
  readonly upstreamTimeoutMs: number;
  readonly limiter: Limiter;
  readonly observe: Observe;
  readonly attributes: RequestAttributes;
  readonly headers: HeadersOption;
  readonly tls: TlsFiles | undefined;
  /** With `--usage`; `fields`: the format of the rate limit headers. */
  readonly llm: { readonly gateway: LlmGateway; readonly fields: FieldsForm } | undefined;
  /** Whether clients should move to another instance. */
  readonly isLameDuck: () => boolean;
  readonly log: Log;
}

/** Uploads may be long, so a whole request gets more time than a check; a client that neither sends nor reads does not. */
const proxyBounds = { requestTimeout: 300_000, headersTimeout: 10_000, idleTimeoutMs: 120_000 } as const;

/** The client disconnected while its request waited for a turn. */
const LEFT = new Error("the client left");
const NOBODY = { decision: undefined, answer: undefined };

export function createProxy(options: ProxyOptions): Server {
  const upstream = createUpstream(options);
  const observer = options.observe("proxy");
  const decide = decider(options, observer, { upstream: upstream.host });
  const ended = new WeakSet<Socket>();
  const problemOfClient = (client: IncomingMessage) => normaliseRequest(client, options.attributes.normalTarget);

  const gateway = options.llm?.gateway;
  const { refuse, fail } = problemWriters(options);
  const turnsAway = (): boolean => options.isLameDuck() || isClosing(server);

  async function serve(client: IncomingMessage, response: ServerResponse): Promise<void> {
    // Ignore bytes after a request that closes its connection: sender and proxy may disagree where the next one begins.
    if (ended.has(client.socket)) return;
    const ambiguity = problemOfClient(client);
    if (ambiguity !== undefined) {
      ended.add(client.socket);
      refuse(response, ambiguity);
      return;
    }
    const call = await gateway?.read(client);
    // The client disconnected before its body was complete.
    if (gateway !== undefined && call === undefined) return;
    const exchange = { client, response, isDecided: false };
    asks(exchange);
    const { decision, answer } = await decide(client, call?.attributes).catch((error) => {
      call?.body?.letGo();
      if (error === LEFT) return NOBODY;
      throw error;
    });
    if (decision === undefined) return;
    exchange.isDecided = true;
    const end = holdUntilEnd(options, { decision, response, call, turnsAway });
    // The client may have disconnected during the check; "close" was then emitted before anything listened.
    if (response.destroyed) end({ wasPassed: false });
    else if (decision.allowed)
      passRequest({ client, response, upstream, rateLimitFields: answer.headers, turnsAway, call, refuse });
    else sendRefusal(client, response, answer);
  }

  const server = boundedServer(options.tls, (client, response) => {
    serve(client, response).catch((error) => fail(response, error));
  });
  server.on("clientError", answerClientError);
  server.requestTimeout = proxyBounds.requestTimeout;
  const asks = closeIdleClients(server, proxyBounds.idleTimeoutMs);

  server.on("upgrade", (client: IncomingMessage, socket: Socket, head: Buffer) => {
    // Without a listener, an error on a connection that Node has handed over would crash the process.
    socket.on("error", () => undefined);
    if (isWebSocket(client) && problemOfClient(client) === undefined)
      void upgrade(options, { client, socket, head, upstream, decide });
    else serveWithoutUpgrade(client, socket);
  });

  /** A server may ignore an upgrade (RFC 9110, section 7.8). */
  function serveWithoutUpgrade(client: IncomingMessage, socket: Socket): void {
    const response = new ServerResponse(client);
    response.assignSocket(socket);
    response.shouldKeepAlive = false;
    response.once("finish", () => socket.end());
    if (!hasNoBody(client)) {
      writeLastProblem(response, problem("invalid-request", "upgrade: not accepted with a body"));
      return;
    }
    serve(client, response).catch((error) => fail(response, error));
  }

  server.on("close", () => upstream.close());
  return server;
}

interface Upgrading {
  readonly client: IncomingMessage;
  readonly socket: Socket;
  readonly head: Buffer;
  readonly upstream: Upstream;
  readonly decide: Decide;
}

async function upgrade(options: ProxyOptions, upgrading: Upgrading): Promise<void> {
  const { client, socket, decide } = upgrading;
  const { limiter, log } = options;
  try {
    socket.setTimeout(0);
    const { decision, answer } = await decide(client);
    if (!decision.allowed) {
      refuseUpgrade(socket, answer);
      return;
    }
    const release = holdLease(decision);
    // Usage of a tunnel is not metered: the reserved amount stands.
    const usedSoFar = (): Attributes => ({});
    const { reservation } = decision;
    const held = holdReservation({ limiter, reservation, usedSoFar, onRefused: () => socket.destroy() });
    const onEnd = (): void => {
      release(false);
      held.end({});
    };
    if (socket.destroyed) onEnd();
    else passUpgrade({ ...upgrading, rateLimitFields: answer.headers, onEnd });
  } catch (error) {
    if (error !== LEFT) log.error("an upgrade failed", { error: String(error) });
    socket.destroy();
  }
}

/** Writes problems in the standard format, or in the vendor's. */
function problemWriters({ llm, log }: ProxyOptions) {
  const spelling = llm && {
    type: "application/json",
    bodyOf: (refused: Problem) => vendorError(llm.gateway.vendor, refused),
  };
  const refuse = (response: ServerResponse, refused: Problem): void => writeLastProblem(response, refused, spelling);
  const fail = (response: ServerResponse, error: unknown): void => {
    const known = problemOf(error);
    if (known === undefined)
      log.error("a proxied request failed", { error: String(error), stack: (error as Error)?.stack });
    refuse(response, known ?? internalProblem);
  };
  return { refuse, fail };
}

/** When the response is over, releases the lease and settles the reservation at what was used. */
function holdUntilEnd(
  { limiter }: ProxyOptions,
  { decision, response, call, turnsAway }: Held,
): (end: { wasPassed: boolean }) => void {
  const release = holdLease(decision);
  const held = holdReservation({
    limiter,
    reservation: decision.reservation,
    usedSoFar: () => usedBy(call, { isWhole: false }) ?? {},
    onRefused: () => {
      isStopped = true;
      response.destroy();
    },
  });
  let isStopped = false;
  let isOver = false;
  const end = ({ wasPassed }: { wasPassed: boolean }): void => {
    release(wasPassed && !response.writableFinished);
    call?.body?.letGo();
    const { writableFinished: isWhole, statusCode: status } = response;
    const used = wasPassed ? usedBy(call, { isWhole, status }) : undefined;
    held.end(used);
    if (!isOver && used !== undefined) call?.ended(used);
    isOver = true;
  };
  response.once("close", () => {
    const wasPassed = decision.allowed;
    const isLeft = wasPassed && !response.writableFinished && !isStopped && !turnsAway();
    const drained = isLeft ? call?.readOn() : undefined;
    if (drained === undefined) end({ wasPassed });
    else void drained.then(() => end({ wasPassed }));
  });
  return end;
}

interface Held {
  readonly decision: Decision;
  readonly response: ServerResponse;
  readonly call: LlmCall | undefined;
  readonly turnsAway: () => boolean;
}

/** Without `--usage` nothing is metered: the reserved amount stands. */
function usedBy(call: LlmCall | undefined, end: { isWhole: boolean; status?: number }): Attributes | undefined {
  return call === undefined ? {} : call.used(end);
}

/** Rejects with `LEFT` if the client disconnected. */
type Decide = (client: IncomingMessage, ofCall?: Attributes) => Promise<{ decision: Decision; answer: JsonAnswer }>;

/** `ofProxy`: default attributes of every request; the mapping file may override them. */
function decider(options: ProxyOptions, observer: RequestObserver, ofProxy: Attributes): Decide {
  const { limiter, attributes } = options;
  return async (client, ofCall = {}) => {
    const arrival = { sinceMs: performance.now(), traceparent: client.headers.traceparent };
    const known = await attributes.attributesOf({
      method: client.method ?? "GET",
      target: client.url ?? "/",
      host: client.headers.host,
      headers: client.headers,
      rawHeaders: client.rawHeaders,
      peer: client.socket.remoteAddress,
    });
    const left = new ClientLeft(client);
    try {
      const decision = await limiter.acquire({ ...ofProxy, ...known, ...ofCall }, { signal: left.signal });
      observer.decided(decision, arrival);
      return { decision, answer: spelled(decision, options) };
    } catch (error) {
      throw left.isSo ? LEFT : error;
    } finally {
      left.forget();
    }
  };
}

function spelled(decision: Decision, { limiter, headers, llm }: ProxyOptions): JsonAnswer {
  if (llm === undefined) return answerOf(decision, { headers });
  const { gateway, fields } = llm;
  const ruleOf = limiter.findRule.bind(limiter);
  return vendorAnswer(decision, { vendor: gateway.vendor, headers, form: fields, ruleOf, nowMs: Date.now });
}

function sendRefusal(client: IncomingMessage, response: ServerResponse, { status, headers, body }: JsonAnswer): void {
  const text = JSON.stringify(body);
  // An unread body blocks the connection for further requests, so close it.
  const isRead = hasNoBody(client) || client.complete;
  const closing = isRead ? {} : { Connection: "close" };
  if (!isRead) lingerAfter(response);

  response.writeHead(status, { ...headers, ...closing, "Content-Length": Buffer.byteLength(text) });
  response.end(text);
}

function refuseUpgrade(socket: Duplex, { status, headers, body }: JsonAnswer): void {
  const text = JSON.stringify(body);
  const fields = [
    ...Object.entries(headers).flat(),
    "Content-Length",
    String(Buffer.byteLength(text)),
    "Connection",
    "close",
  ];
  socket.end(responseHead(status, status === 429 ? "Too Many Requests" : "Service Unavailable", fields) + text);
}
