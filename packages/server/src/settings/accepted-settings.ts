/** The types of settings: accepted values, and how messages describe them. Pure, except that files and folders must exist. */
import { statSync } from "node:fs";
import { isKeyPrefix, KEY_PREFIX_EXPECTED } from "sluice/internal";

export interface Accepted<T> {
  /** Placeholder for the value in `--help`. */
  readonly placeholder: string;
  readonly expected: string;
  /** Undefined if the text is not accepted. */
  readonly parse: (text: string) => T | undefined;
}

/**
 * Rejects control characters: they would end up in paths, mail headers and certificate names, where they fail late or change the meaning.
 */
export function text(placeholder: string, expected: string): Accepted<string> {
  return {
    placeholder,
    expected,
    parse: (given) => (given.trim() === "" || /\p{Cc}|\p{Cs}/u.test(given) ? undefined : given),
  };
}

export function wholeNumber({ least, most }: { least: number; most: number }): Accepted<number> {
  return {
    placeholder: "N",
    expected: `a whole number from ${least} to ${most}`,
    parse(given) {
      const number = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
      return number >= least && number <= most ? number : undefined;
    },
  };
}

export const share: Accepted<number> = {
  placeholder: "SHARE",
  expected: "a number from 0 to 1",
  parse(given) {
    const number = /^\d{1,3}(\.\d{1,9})?$/.test(given) ? Number(given) : Number.NaN;
    return number <= 1 ? number : undefined;
  },
};

export const port: Accepted<number> = { ...wholeNumber({ least: 0, most: 65_535 }), placeholder: "PORT" };

export function oneOf<const W extends string>(words: readonly W[]): Accepted<W> {
  return {
    placeholder: words.join("|"),
    expected: `one of ${words.join(", ")}`,
    parse: (given) => words.find((word) => word === given),
  };
}

export const yesNo: Accepted<boolean> = {
  placeholder: "true|false",
  expected: "true or false",
  parse: (given) => (given === "true" ? true : given === "false" ? false : undefined),
};

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };

/** In ms. */
export const duration: Accepted<number> = {
  placeholder: "DURATION",
  expected: 'a duration such as "50ms" or "10s", up to an hour',
  parse(given) {
    const parts = /^(\d{1,7})(ms|s|m)$/.exec(given);
    if (parts === null) return undefined;
    const ms = Number(parts[1]) * unitMs[parts[2]!]!;
    return ms >= 1 && ms <= 3_600_000 ? ms : undefined;
  },
};

/** In ms. */
export const longDuration: Accepted<number> = {
  placeholder: "DURATION",
  expected: 'a duration such as "12h" or "7d", from a minute to a year',
  parse(given) {
    const parts = /^(\d{1,6})(m|h|d)$/.exec(given);
    if (parts === null) return undefined;
    const ms = Number(parts[1]) * { m: 60_000, h: 3_600_000, d: 86_400_000 }[parts[2] as "m" | "h" | "d"];
    return ms >= 60_000 && ms <= 366 * 86_400_000 ? ms : undefined;
  },
};

const MOST_ATTRIBUTE_NAMES = 64;

export const attributeNames: Accepted<readonly string[]> = {
  placeholder: "NAME,…",
  expected: `up to ${MOST_ATTRIBUTE_NAMES} names of attributes such as user,ip, with commas between`,
  parse(given) {
    const names = given.split(",").map((name) => name.trim());
    return names.length <= MOST_ATTRIBUTE_NAMES && names.every((name) => name !== "") ? names : undefined;
  },
};

const unitBytes: Readonly<Record<string, number>> = { MB: 10 ** 6, GB: 10 ** 9, MiB: 2 ** 20, GiB: 2 ** 30 };

/** In bytes. */
export const memory: Accepted<number> = {
  placeholder: "SIZE",
  expected: 'a size such as "256MiB" or "1GB", from 2MB to 1024GiB',
  parse(given) {
    const parts = /^(\d{1,7})(MB|GB|MiB|GiB)$/.exec(given);
    if (parts === null) return undefined;
    const bytes = Number(parts[1]) * unitBytes[parts[2]!]!;
    return bytes >= 2 * 10 ** 6 && bytes <= 2 ** 40 ? bytes : undefined;
  },
};

/** A duration, or 0. */
export const durationOrNone: Accepted<number> = {
  ...duration,
  expected: 'a duration such as "500ms" or "3s", up to an hour, or 0',
  parse: (given) => (/^0(ms|s|m)?$/.test(given) ? 0 : duration.parse(given)),
};

export const store: Accepted<string> = {
  placeholder: "URL",
  expected: "memory, or a URL that begins with redis://, rediss://, redis+sentinel:// or redis+cluster://",
  parse: (given) =>
    given === "memory" || /^redis(s|\+sentinel|\+cluster|s\+sentinel|s\+cluster)?:\/\/[^\s/]/.test(given)
      ? given
      : undefined,
};

/** Without memory: a global store must be shared. */
export const globalStore: Accepted<string> = {
  placeholder: "URL",
  expected: "a URL that begins with redis://, rediss://, redis+sentinel:// or redis+cluster://",
  parse: (given) => (given === "memory" ? undefined : store.parse(given)),
};

export const keyPrefix: Accepted<string> = {
  placeholder: "PREFIX",
  expected: KEY_PREFIX_EXPECTED,
  parse: (given) => (isKeyPrefix(given) ? given : undefined),
};

export const regionName: Accepted<string> = {
  placeholder: "NAME",
  expected: 'a name such as "eu-west": letters, digits, ".", "_", "-", at most 63',
  parse: (given) => (/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(given) ? given : undefined),
};

export const database: Accepted<string> = {
  placeholder: "URL",
  expected: "sqlite:PATH, or a URL that begins with postgres://",
  parse: (given) => (/^sqlite:.+|^postgres(ql)?:\/\/./.test(given) ? given : undefined),
};

function url(expected: string, accepts: (parsed: URL) => boolean): Accepted<string> {
  return {
    placeholder: "URL",
    expected,
    parse: (given) => (URL.canParse(given) && accepts(new URL(given)) ? given : undefined),
  };
}

const isHttp = ({ protocol }: URL) => protocol === "http:" || protocol === "https:";

export const hostAndPort: Accepted<string> = {
  placeholder: "HOST:PORT",
  expected: "a host and a port, such as 127.0.0.1:18000",
  parse(given) {
    const [, , port] = /^(\[[\da-fA-F:.]+\]|[\w.-]+):(\d{1,5})$/.exec(given) ?? [];
    return port !== undefined && Number(port) <= 65_535 ? given : undefined;
  },
};

const usagePointer = /^(?:\/|(?:\/(?:[^/~\s]|~[01]){1,64}){1,16})$/;

/** A vendor's name, or where the counts are in its answers (RFC 6901; `/` for the document itself). */
export const usage: Accepted<string> = {
  placeholder: "openai|anthropic|POINTER",
  expected: "openai, anthropic, or a JSON pointer such as /usageMetadata",
  parse: (given) => (given === "openai" || given === "anthropic" || usagePointer.test(given) ? given : undefined),
};

const MOST_PAIRS = 64;

/** Comma-separated `name=value` pairs. */
export const pairs: Accepted<Readonly<Record<string, string>>> = {
  placeholder: "NAME=VALUE,…",
  expected: `up to ${MOST_PAIRS} of name=value, with commas between`,
  parse(given) {
    const found = given.split(",").map((part) => /^\s*([^=,\s]+)=(.*)$/.exec(part));
    if (found.length > MOST_PAIRS || found.some((pair) => pair === null)) return undefined;
    return Object.fromEntries(found.map((pair) => [pair![1]!, pair![2]!]));
  },
};

function headers(expected: string, name: RegExp): Accepted<Readonly<Record<string, string>>> {
  return {
    placeholder: pairs.placeholder,
    expected: `${pairs.expected}, ${expected}`,
    parse(given) {
      const found = pairs.parse(given);
      const isHeader = ([key, value]: [string, string]) => name.test(key) && /^[\x20-\x7e]*$/.test(value);
      return found !== undefined && Object.entries(found).every(isHeader) ? found : undefined;
    },
  };
}

/** RFC 9110, section 5.6.2. */
export const httpHeaders = headers(
  "each a header's name and printable ASCII characters",
  /^[\w!#$%&'*+.^`|~-]{1,128}$/,
);

/** Names that end with -bin are for binary values. */
export const grpcMetadata = headers(
  "each a name of gRPC metadata, not one that ends with -bin, and printable ASCII characters",
  /^(?!.*-bin$)[0-9a-z_.-]{1,128}$/i,
);

/** The headers of a response to Envoy: ours, none, or three names for limit, remaining and reset. */
export const responseFields: Accepted<"standard" | "off" | readonly [string, string, string]> = {
  placeholder: "standard|off|NAME,NAME,NAME",
  expected:
    "standard, off, or three header names with commas between: for the limit, what remains, and the seconds until the reset",
  parse(given) {
    if (given === "standard" || given === "off") return given;
    const names = given.split(",").map((name) => name.trim());
    const areNames = names.length === 3 && names.every((name) => /^[\w!#$%&'*+.^`|~-]{1,128}$/.test(name));
    return areNames ? (names as [string, string, string]) : undefined;
  },
};

export const httpUrl = url("a URL that begins with http:// or https://", isHttp);

export const upstream = url(
  "a URL such as http://127.0.0.1:3000, without user, query or fragment",
  (parsed) => isHttp(parsed) && parsed.username === "" && parsed.search === "" && parsed.hash === "",
);

export interface Webhook {
  readonly url: URL;
  readonly format: "json" | "slack";
}

const MOST_WEBHOOKS = 10;

export const webhooks: Accepted<readonly Webhook[]> = {
  placeholder: "URL,…",
  expected: `up to ${MOST_WEBHOOKS} URLs that begin with https://, http:// or, for Slack's format, slack+https://, with commas between`,
  parse(given) {
    const parsed = given.split(",").map((part): Webhook | undefined => {
      const [, slack, address] = /^(slack\+)?(https?:\/\/.+)$/.exec(part.trim()) ?? [];
      if (address === undefined || !URL.canParse(address)) return undefined;
      return { url: new URL(address), format: slack === undefined ? "json" : "slack" };
    });
    return parsed.length <= MOST_WEBHOOKS && parsed.every((webhook) => webhook !== undefined) ? parsed : undefined;
  },
};

export const smtpUrl: Accepted<URL> = {
  placeholder: "URL",
  expected: "a URL that begins with smtp:// or smtps:// and names a host, its user and password percent-encoded",
  parse(given) {
    if (!/^smtps?:\/\/./.test(given) || !URL.canParse(given)) return undefined;
    const parsed = new URL(given);
    const isEncoded = /^(?:[^%]|%[\da-f]{2})*$/i.test(parsed.username + parsed.password);
    return parsed.hostname !== "" && isEncoded ? parsed : undefined;
  },
};

/** Without a trailing slash. */
export const publicUrl: Accepted<string> = {
  placeholder: "URL",
  expected: "a URL such as https://limits.example, without path or query",
  parse(given) {
    if (!/^https?:\/\//.test(given) || !URL.canParse(given)) return undefined;
    const { pathname, search, hash, username, origin } = new URL(given);
    return pathname === "/" && search + hash + username === "" ? origin : undefined;
  },
};

const MOST_HOST_NAMES = 100;

export const hostNames: Accepted<readonly string[]> = {
  placeholder: "NAME,…",
  expected: `up to ${MOST_HOST_NAMES} host names such as limits.example, without scheme or port, with commas between`,
  parse(given) {
    const names = given.split(",").map((name) => name.trim());
    const areNames = names.every((name) => /^[a-z0-9_]([a-z0-9._-]{0,251}[a-z0-9_.])?$/i.test(name));
    return areNames && names.length <= MOST_HOST_NAMES ? names : undefined;
  },
};

/** Short tokens can be guessed; RFC 6750 defines the characters of a bearer token. */
export const token: Accepted<string> = {
  placeholder: "TOKEN",
  expected: "a token of 16 to 256 letters, digits or - . _ ~ + / =",
  parse: (given) => (/^[\w.~+/=-]{16,256}$/.test(given) ? given : undefined),
};

function existing(placeholder: string, expected: string, isRight: (path: string) => boolean): Accepted<string> {
  return {
    placeholder,
    expected,
    parse(given) {
      try {
        return isRight(given) ? given : undefined;
      } catch {
        return undefined;
      }
    },
  };
}

export const file = existing("FILE", "a file that can be read", (path) => statSync(path).isFile());
export const folder = existing("DIR", "a folder that can be read", (path) => statSync(path).isDirectory());
