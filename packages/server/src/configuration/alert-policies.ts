/**
 * The alert policy in force, and its changes. Read from the database at most once a second; while that is away, the last one read stays.
 */
import { randomBytes } from "node:crypto";
import { SluiceError } from "sluice";
import { ServiceError } from "../errors.js";
import type { Log } from "../log.js";
import { type AlertPolicy, emptyPolicy, readAlertPolicy } from "./alert-policy.js";
import type { AlertRepository, ReceiverSecrets, Silence, SilenceMatch } from "./repository/alert-repository.js";

export type { Silence, SilenceMatch } from "./repository/alert-repository.js";

export interface PolicyInForce {
  readonly version: number;
  readonly policy: AlertPolicy;
  readonly secrets: ReceiverSecrets;
  readonly silences: readonly Silence[];
}

const none: PolicyInForce = { version: 0, policy: emptyPolicy, secrets: {}, silences: [] };
const FRESH_MS = 1_000;
const LONGEST_SILENCE_MS = 90 * 24 * 3_600_000;

interface PolicyChange {
  readonly author: string;
  readonly message?: string | undefined;
  /** The version that the caller has seen. Absent: the newest, whatever it is. */
  readonly ifMatch?: number | undefined;
  readonly document: unknown;
}

export class AlertPolicies {
  readonly #repository: AlertRepository | undefined;
  readonly #log: Pick<Log, "warn">;
  #held = none;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #failing = false;

  /** Without a repository (rules from a file) the policy is empty and cannot be changed. */
  constructor(repository: AlertRepository | undefined, log: Pick<Log, "warn">) {
    this.#repository = repository;
    this.#log = log;
  }

  /** Never rejects. */
  async inForce(): Promise<PolicyInForce> {
    if (this.#repository === undefined || performance.now() - this.#readAtMs < FRESH_MS) return this.#held;
    this.#reading ??= this.#read(this.#repository).finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
    return this.#held;
  }

  /** As the database has it now; rejects while that is away. */
  async newest(): Promise<PolicyInForce> {
    this.#held = await readAll(this.#changeable());
    this.#readAtMs = performance.now();
    return this.#held;
  }

  async change({ author, message = "", ifMatch, document }: PolicyChange): Promise<PolicyInForce> {
    const repository = this.#changeable();
    const before = await this.newest();
    if (ifMatch !== undefined && ifMatch !== before.version) throw mismatch(ifMatch, before.version);
    const read = readAlertPolicy(document, before);
    if ("mistakes" in read) {
      const lines = read.mistakes.map(({ path, message: what }) => `${path}: ${what}`);
      throw new SluiceError("invalid-request", lines.join("\n"), { mistakes: read.mistakes });
    }
    const { policy, secrets } = read;
    const summary = Object.fromEntries(Object.entries(policy).map(([name, list]) => [name, list.length]));
    const version = await repository.commitPolicy({
      base: before.version,
      author,
      message,
      document: JSON.stringify(policy),
      secrets,
      summary,
    });
    if (version === undefined) throw mismatch(before.version, before.version + 1);
    return await this.newest();
  }

  async silence(asked: { match: SilenceMatch; reason: string; author: string; forMs: number }): Promise<Silence> {
    const { match, reason, author, forMs } = asked;
    if (forMs > LONGEST_SILENCE_MS) throw new SluiceError("invalid-request", "for: expected at most 90 days");
    const createdAtMs = Date.now();
    const id = randomBytes(9).toString("base64url");
    const silence: Silence = { id, match, reason, author, createdAtMs, endsAtMs: createdAtMs + forMs };
    if (!(await this.#changeable().addSilence(silence)))
      throw new ServiceError("too-busy", "as many silences as are kept are there already: end some first");
    await this.newest();
    return silence;
  }

  async endSilence(id: string, by: string): Promise<void> {
    if (!(await this.#changeable().endSilence(id, by)))
      throw new ServiceError("unknown-silence", `there is no silence ${JSON.stringify(id)}, or it is over`);
    await this.newest();
  }

  #changeable(): AlertRepository {
    if (this.#repository !== undefined) return this.#repository;
    throw new ServiceError("rules-from-file", "with rules from a file there is no database that could keep this");
  }

  async #read(repository: AlertRepository): Promise<void> {
    try {
      this.#held = await readAll(repository);
      this.#failing = false;
    } catch (error) {
      if (!this.#failing)
        this.#log.warn("the alert policy could not be read; the last one stays", { error: String(error) });
      this.#failing = true;
    }
    this.#readAtMs = performance.now();
  }
}

async function readAll(repository: AlertRepository): Promise<PolicyInForce> {
  const [stored, silences] = await Promise.all([repository.policy(), repository.silences()]);
  if (stored === undefined) return { ...none, silences };
  const { version, document, secrets } = stored;
  return { version, policy: { ...emptyPolicy, ...(JSON.parse(document) as AlertPolicy) }, secrets, silences };
}

function mismatch(given: number, currentVersion: number): ServiceError {
  return new ServiceError("version-mismatch", `the alert policy is at version ${currentVersion}, not ${given}`, {
    details: { currentVersion },
  });
}
