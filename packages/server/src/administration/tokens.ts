/**
 * Authenticates callers of the admin API. Tokens are 256 random bits; only their SHA-256 is stored (slow hashes protect passwords that
 * people choose, which these are not). All hashes are compared in constant time, so that timing does not reveal how close a guess was.
 *
 * The first token is this instance's own: from --admin-token, or created on first start in a file of mode 0600.
 * Named tokens are in the database and work on every instance. While the database is down, those last read keep working.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SluiceError } from "sluice";
import type { ConfigurationLog } from "../configuration/configuration.js";
import type { NotedSession, Role, RuleRepository, StoredToken } from "../configuration/repository/rule-repository.js";
import { ServiceError } from "../errors.js";
import { CachedValue } from "./cached-value.js";
import { EndedSessions } from "./ended-sessions.js";
import {
  claimedSession,
  isSignedBy,
  newSession,
  type Session,
  type SessionKey,
  sessionKey,
  signSession,
} from "./sessions.js";

interface TokensOptions {
  readonly dataFolder: string;
  /** `--admin-token`: no file is created. */
  readonly adminToken?: string | undefined;
  /** Where named tokens are stored; absent (rules from a file): there is only the first token. */
  readonly repository?: RuleRepository | undefined;
  readonly log: ConfigurationLog;
  /** What single sign-on sessions are bound to; absent: there are none. */
  readonly ssoBond?: Buffer | undefined;
}

/** The owner of a request's token. */
export interface Caller {
  readonly name: string;
  readonly role: Role;
}

/** The name under which the first token acts. Reserved: no named token can have it. */
const FIRST_TOKEN_NAME = "admin";
const FILE = "admin-token";
const SHORTEST_TOKEN = 16;
const NOTE_USE_EVERY_MS = 60_000;
const LONGEST_AGENT = 200;

export async function openTokens(options: TokensOptions): Promise<Tokens> {
  if (options.adminToken !== undefined) return new Tokens(options, { token: checkedToken(options.adminToken) });
  const file = join(options.dataFolder, FILE);
  return new Tokens(options, { token: readOrMake(file), file });
}

/** Reads the first token, creating it if necessary. */
export function readFirstToken({ dataFolder, adminToken }: Pick<TokensOptions, "dataFolder" | "adminToken">): string {
  return adminToken === undefined ? readOrMake(join(dataFolder, FILE)) : checkedToken(adminToken);
}

export class Tokens {
  /** The first token's file; undefined if it was given as a setting. */
  readonly file: string | undefined;
  readonly #first: Buffer;
  readonly #sessionKey: SessionKey;
  readonly #options: TokensOptions;
  readonly #named: CachedValue<readonly StoredToken[]>;
  readonly #ended: EndedSessions;
  /** When each token's last use was written. */
  readonly #noted = new Map<string, number>();

  constructor(options: TokensOptions, { token, file }: { token: string; file?: string }) {
    this.#options = options;
    this.#first = hashOf(token);
    this.#sessionKey = sessionKey(token);
    this.file = file;
    const { repository, dataFolder, log } = options;
    this.#named = new CachedValue(async () => (await repository?.tokens()) ?? [], {
      initial: [],
      onError: (error) => log.warn("tokens could not be read; those last read still work", { error: String(error) }),
    });
    this.#ended = new EndedSessions({ repository, dataFolder, log });
  }

  /** Undefined if the header has no known token. */
  async authenticate(authorization: string | undefined): Promise<Caller | undefined> {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    return token === undefined ? undefined : await this.#callerOf(hashOf(token));
  }

  /** Opens a dashboard session; undefined if the token is unknown. */
  async openSession(token: string, agent = ""): Promise<(Caller & { value: string }) | undefined> {
    const tokenHash = hashOf(token);
    const caller = await this.#callerOf(tokenHash);
    if (caller === undefined) return undefined;
    const session = newSession(caller.name);
    const noted = { ...session, createdAtMs: Date.now(), agent: agent.slice(0, LONGEST_AGENT) };
    // Signing in does not wait for this, and succeeds without it.
    void this.#options.repository
      ?.noteSession(noted)
      .catch((error) => this.#options.log.warn("a session could not be noted", { error: String(error) }));
    return { ...caller, value: signSession(session, { key: this.#sessionKey, tokenHash }) };
  }

  /** Opens a session for a person authenticated by the SSO provider. Its name has a colon, which token names cannot have. */
  openPersonalSession({ name, role }: Caller, agent = ""): string {
    const session = newSession(name, role);
    const noted = { ...session, createdAtMs: Date.now(), agent: agent.slice(0, LONGEST_AGENT) };
    void this.#options.repository
      ?.noteSession(noted)
      .catch((error) => this.#options.log.warn("a session could not be noted", { error: String(error) }));
    return signSession(session, { key: this.#sessionKey, tokenHash: this.#options.ssoBond! });
  }

  /** For the audit log; a failure does not break the sign-in. */
  async noteSignIn(name: string, role: Role): Promise<void> {
    await this.#options.repository
      ?.record({ actor: name, action: "session.opened", target: name, details: { role } })
      .catch((error) => this.#options.log.warn("a sign-in could not be recorded", { error: String(error) }));
  }

  /** Sessions still open; with `name`, those of one token. */
  async sessions(name?: string): Promise<NotedSession[]> {
    const found = await this.#repository().sessions();
    const isOpen = await Promise.all(found.map(async (session) => !(await this.#ended.has(session))));
    return found.filter((session, i) => isOpen[i] && (name === undefined || session.name === name));
  }

  /** Ends another session, on every instance. False if there is none, or it belongs to someone other than `owner`. */
  async endSessionOf(id: string, { by, owner }: { by: string; owner?: string | undefined }): Promise<boolean> {
    const session = (await this.sessions(owner)).find((one) => one.id === id);
    if (session === undefined) return false;
    await this.#ended.end(session);
    await this.#repository().record({ actor: by, action: "session.ended", target: session.name, details: {} });
    return true;
  }

  /** The session's owner; undefined if it has expired, was signed out or forged, or its token was deleted. */
  async resume(value: string): Promise<Caller | undefined> {
    return (await this.#sessionOf(value))?.caller;
  }

  /** Signs out, on every instance. Does nothing if the value is no valid session. */
  async endSession(value: string): Promise<void> {
    const known = await this.#sessionOf(value);
    if (known !== undefined) await this.#ended.end(known.session);
  }

  async #sessionOf(value: string): Promise<{ session: Session; caller: Caller } | undefined> {
    const claimed = claimedSession(value);
    if (claimed === undefined || claimed.endsAtMs <= Date.now()) return undefined;
    if (claimed.role !== undefined) return await this.#personOf(value, claimed, claimed.role);
    const named = (await this.#named.get()).find((token) => token.name === claimed.name && !isExpired(token));
    const tokenHash = claimed.name === FIRST_TOKEN_NAME ? this.#first : named && Buffer.from(named.hash, "hex");
    if (tokenHash === undefined || !isSignedBy(value, { key: this.#sessionKey, tokenHash })) return undefined;
    if (await this.#ended.has(claimed)) return undefined;
    if (named !== undefined) this.#noteUse(named.name);
    return { session: claimed, caller: { name: claimed.name, role: named?.role ?? "admin" } };
  }

  async #personOf(
    value: string,
    session: Session,
    role: Role,
  ): Promise<{ session: Session; caller: Caller } | undefined> {
    const { ssoBond } = this.#options;
    if (ssoBond === undefined || !isSignedBy(value, { key: this.#sessionKey, tokenHash: ssoBond })) return undefined;
    return (await this.#ended.has(session)) ? undefined : { session, caller: { name: session.name, role } };
  }

  async #callerOf(hash: Buffer): Promise<Caller | undefined> {
    let caller: Caller | undefined;
    for (const token of await this.#named.get()) {
      const { name, role, hash: known } = token;
      const bytes = Buffer.from(known, "hex");
      if (bytes.length === hash.length && timingSafeEqual(bytes, hash) && !isExpired(token)) caller = { name, role };
    }
    if (caller !== undefined) this.#noteUse(caller.name);
    return timingSafeEqual(this.#first, hash) ? { name: FIRST_TOKEN_NAME, role: "admin" } : caller;
  }

  /** At most once a minute per token; no call waits for it. */
  #noteUse(name: string): void {
    const nowMs = Date.now();
    if (nowMs - (this.#noted.get(name) ?? 0) < NOTE_USE_EVERY_MS) return;
    this.#noted.set(name, nowMs);
    void this.#options.repository?.noteTokenUse(name, nowMs).catch(() => this.#noted.delete(name));
  }

  async list(): Promise<Omit<StoredToken, "hash">[]> {
    const tokens = await this.#repository().tokens();
    return tokens.map(({ hash: _, ...shown }) => shown);
  }

  /** Creates a token. Its secret is returned only here. */
  async create(asked: { name: string; role: Role; by: string; expiresAtMs?: number | undefined }): Promise<string> {
    const { name, role, by, expiresAtMs } = asked;
    const token = newToken();
    const hash = hashOf(token).toString("hex");
    const isFree =
      name.toLowerCase() !== FIRST_TOKEN_NAME &&
      (await this.#repository().addToken({
        ...{ name, role, hash, createdBy: by },
        ...(expiresAtMs !== undefined && { expiresAtMs }),
      }));
    if (!isFree)
      throw new ServiceError(
        "token-exists",
        `there is a token named ${JSON.stringify(name)} already (case does not matter)`,
      );
    this.#named.expire();
    return token;
  }

  async remove(name: string, by: string): Promise<void> {
    const wasThere = await this.#repository().removeToken(name, by);
    if (!wasThere) throw new ServiceError("unknown-token", `there is no token named ${JSON.stringify(name)}`);
    this.#named.expire();
  }

  #repository(): RuleRepository {
    const { repository } = this.#options;
    if (repository !== undefined) return repository;
    throw new ServiceError("rules-from-file", "named tokens need a database, and the rules come from a file");
  }
}

function readOrMake(file: string): string {
  try {
    return readExisting(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  mkdirSync(join(file, ".."), { recursive: true });
  // Written completely, then linked into place: of several workers that start together one creates it, the others read it.
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${newToken()}\n`, { mode: 0o600, flag: "wx" });
  chmodSync(draft, 0o600);
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return readExisting(file);
}

function readExisting(file: string): string {
  const token = readFileSync(file, "utf8").trim();
  if (token.length >= SHORTEST_TOKEN) return token;
  throw new SluiceError("invalid-setting", `${file}: expected a token; delete the file to have a new one made`);
}

function isExpired({ expiresAtMs }: Pick<StoredToken, "expiresAtMs">): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= Date.now();
}

function checkedToken(token: string): string {
  if (token.length >= SHORTEST_TOKEN && !/\s/.test(token)) return token;
  throw new SluiceError(
    "invalid-setting",
    `admin-token: expected at least ${SHORTEST_TOKEN} characters without spaces, got ${token.length}`,
  );
}

function newToken(): string {
  return `slu_${randomBytes(32).toString("base64url")}`;
}

function hashOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
