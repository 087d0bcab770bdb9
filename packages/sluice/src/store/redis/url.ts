/**
 * Parses the URL of a store: one Redis, a set watched by Sentinels, or a Cluster.
 *   redis://[user:password@]host:port[/db]      rediss:// for TLS
 *   redis+sentinel://[user:password@]h1:p,h2:p/master[/db]
 *   redis+cluster://[user:password@]h1:p,h2:p     rediss+... for TLS
 * Out: a plain description. Errors name what was expected, and never echo a password.
 */
import { SluiceError } from "../../errors.js";

export interface RedisTarget {
  readonly kind: "single" | "sentinel" | "cluster";
  readonly nodes: readonly { host: string; port: number }[];
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
  /** The name by which the Sentinels know the master. */
  readonly master?: string;
  readonly db: number;
}

const SHAPE = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^/?#]+)((?:\/[^?#]*)?)$/;
const defaultPorts = { single: 6379, sentinel: 26_379, cluster: 6379 } as const;

export function parseRedisUrl(url: string): RedisTarget {
  const shape = SHAPE.exec(url);
  if (shape === null) throw refused(url, 'a URL such as "redis://127.0.0.1:6379"');
  const [, scheme, how, credentials, hosts, path] = shape;
  const kind = (how ?? "single") as RedisTarget["kind"];
  const [first = "", second] = (path ?? "").split("/").slice(1);
  const master = kind === "sentinel" ? decoded(url, first) : undefined;
  if (kind === "sentinel" && !master)
    throw refused(url, 'the master\'s name, as in "redis+sentinel://host:26379/mymaster"');
  const dbText = kind === "sentinel" ? (second ?? "") : first;
  if (!/^\d{0,5}$/.test(dbText) || (kind === "cluster" && dbText !== "")) {
    throw refused(url, kind === "cluster" ? "no database number: a cluster has only database 0" : "a database number");
  }
  const [username, password] = splitOnce(credentials ?? "");
  return {
    kind,
    nodes: (hosts ?? "").split(",").map((host) => parseHost(url, host, defaultPorts[kind])),
    tls: scheme === "rediss",
    ...(username !== "" && { username: decoded(url, username) }),
    ...(password !== undefined && password !== "" && { password: decoded(url, password) }),
    ...(master !== undefined && { master }),
    db: Number(dbText || 0),
  };
}

function splitOnce(credentials: string): [string, string | undefined] {
  const colon = credentials.indexOf(":");
  return colon < 0 ? [credentials, undefined] : [credentials.slice(0, colon), credentials.slice(colon + 1)];
}

function decoded(url: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused(url, 'percent-encoded names and passwords ("%" itself is "%25")');
  }
}

function parseHost(url: string, text: string, defaultPort: number): { host: string; port: number } {
  const shape = /^(\[[0-9a-fA-F:]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(text);
  const port = Number(shape?.[2] ?? defaultPort);
  if (shape === null || port < 1 || port > 65_535) throw refused(url, `a host and port, got ${JSON.stringify(text)}`);
  return { host: shape[1]!.replace(/^\[|\]$/g, ""), port };
}

function refused(url: string, expected: string): SluiceError {
  const shown = url.replace(/\/\/[^@/]*@/, "//***@").slice(0, 120);
  return new SluiceError("invalid-setting", `store: expected ${expected}, in ${JSON.stringify(shown)}`);
}
