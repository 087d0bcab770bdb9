/**
 * Sessions that were signed out before they expired. Kept until they would have expired, where all instances can see them: in the database;
 * with rules from a file, in the data folder, which an instance's workers share.
 * Sign-out never fails: if it cannot be written it takes effect here at once, and is written when the database is back.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigurationLog } from "../configuration/configuration.js";
import type { EndedSession, RuleRepository } from "../configuration/repository/rule-repository.js";
import { CachedValue } from "./cached-value.js";
import type { Session } from "./sessions.js";

type Keeper = Pick<RuleRepository, "endedSessions" | "endSession">;

const FILE = "ended-sessions";

export class EndedSessions {
  readonly #keeper: Keeper;
  readonly #log: ConfigurationLog;
  readonly #kept: CachedValue<readonly EndedSession[]>;
  /** Ended on this instance and not stored yet. */
  #own: readonly EndedSession[] = [];

  constructor(options: { repository: RuleRepository | undefined; dataFolder: string; log: ConfigurationLog }) {
    this.#log = options.log;
    this.#keeper = options.repository ?? inFile(join(options.dataFolder, FILE));
    this.#kept = new CachedValue(() => this.#read(), {
      initial: [],
      onError: (error) =>
        this.#log.warn("ended sessions could not be read; those last read stay ended", { error: String(error) }),
    });
  }

  async end({ id, name, endsAtMs }: Session): Promise<void> {
    this.#own = [...this.#own, { id, name, endsAtMs }];
    this.#kept.expire();
    await this.#kept.get();
  }

  async has({ id, name, endsAtMs }: Session): Promise<boolean> {
    const isIt = (ended: EndedSession): boolean =>
      ended.id === id || (ended.id === undefined && ended.name === name && endsAtMs <= ended.endsAtMs);
    return this.#own.some(isIt) || (await this.#kept.get()).some(isIt);
  }

  /** Stores what is pending, then reads everything. */
  async #read(): Promise<readonly EndedSession[]> {
    for (const ended of this.#own) {
      await this.#keeper.endSession(ended);
      this.#own = this.#own.filter((one) => one !== ended);
    }
    return await this.#keeper.endedSessions();
  }
}

/**
 * One JSON line each. Appended, so that concurrent writes by workers do not overwrite each other; expired entries are dropped at startup.
 */
function inFile(file: string): Keeper {
  const isLive = ({ endsAtMs }: EndedSession): boolean => endsAtMs > Date.now();
  const found = linesOf(file);
  const live = found.filter(isLive);
  if (live.length < found.length) writeFileSync(file, live.map(lineOf).join(""), { mode: 0o600 });
  return {
    async endedSessions() {
      return linesOf(file).filter(isLive);
    },
    async endSession(session) {
      appendFileSync(file, lineOf(session), { mode: 0o600 });
    },
  };
}

function lineOf({ id, name, endsAtMs }: EndedSession): string {
  return `${JSON.stringify({ id, name, endsAtMs })}\n`;
}

function linesOf(file: string): EndedSession[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as EndedSession);
}
