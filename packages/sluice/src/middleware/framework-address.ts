/**
 * The client's address according to a framework's own setting of trusted proxies, with a warning, once, for the classic mistakes. In: the
 * framework's request, by the few fields that are used. Frameworks are not imported here.
 */
import type { IncomingMessage } from "node:http";
import { farthestTrusted, type Hops, warnOfSetup } from "../http/client-address.js";
import type { Trust } from "../http/trusted-proxies.js";

export function nodeHops({ socket, headers }: IncomingMessage): Hops {
  return { peer: socket.remoteAddress, forwarded: headers["x-forwarded-for"] };
}

interface ExpressLike {
  readonly app: { readonly settings: Readonly<Record<string, unknown>> };
}

/** Express compiles its "trust proxy" setting to a function, which `req.ip` uses in the same way. */
export function expressAddress({ app }: ExpressLike, hops: Hops): string | undefined {
  if (hops.forwarded === undefined) return hops.peer;
  const setting = app.settings["trust proxy"];
  if (setting === true) warnOfSetup("TRUSTS_EVERYBODY");
  if (setting === false || setting === undefined) {
    warnOfSetup("FORWARDED_WITHOUT_TRUST");
    return hops.peer;
  }
  return farthestTrusted(hops, app.settings["trust proxy fn"] as Trust);
}

interface FastifyLike {
  readonly ip: string;
  readonly ips?: readonly string[] | undefined;
  readonly raw: IncomingMessage;
}

/** Fastify has `ips` only if `trustProxy` is set. */
export function fastifyAddress(request: FastifyLike, hops: Hops): string | undefined {
  if (hops.forwarded === undefined) return hops.peer;
  if (request.ips === undefined) warnOfSetup("FORWARDED_WITHOUT_TRUST");
  else if (trustsAnyChain(request)) warnOfSetup("TRUSTS_EVERYBODY");
  return request.ip;
}

const probed = new WeakMap<object, boolean>();

/**
 * Fastify does not expose its setting. So the request's own `ip` is tried on a chain of 40 strangers: only a setting that trusts every
 * proxy believes the farthest of them.
 */
function trustsAnyChain(request: FastifyLike): boolean {
  const prototype = Object.getPrototypeOf(request) as object;
  let trusts = probed.get(prototype);
  if (trusts === undefined) {
    const strangers = Array.from({ length: 40 }, (_, i) => `203.0.113.${i + 1}`);
    const raw = { headers: { "x-forwarded-for": strangers.join(", ") }, socket: { remoteAddress: "198.51.100.1" } };
    const probe = Object.create(prototype, { raw: { value: raw } }) as FastifyLike;
    trusts = probe.ip === strangers[0];
    probed.set(prototype, trusts);
  }
  return trusts;
}

interface KoaLike {
  readonly ip: string;
  readonly app: { readonly proxy: boolean; readonly maxIpsCount: number; readonly proxyIpHeader: string };
}

/**
 * Koa takes the leftmost address, which clients can write, unless `maxIpsCount` is set to the number of proxies. `proxyIpHeader` may name
 * another header, which proxies send without X-Forwarded-For.
 */
export function koaAddress({ ip, app }: KoaLike, hops: Hops): string | undefined {
  if (app.proxy && app.proxyIpHeader.toLowerCase() !== "x-forwarded-for") return ip;
  if (hops.forwarded === undefined) return hops.peer;
  if (!app.proxy) warnOfSetup("FORWARDED_WITHOUT_TRUST");
  else if (!(app.maxIpsCount > 0)) warnOfSetup("TRUSTS_EVERYBODY");
  return ip;
}
