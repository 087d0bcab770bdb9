/**
 * The last good rules in a local file, for a start at which neither database nor cache can be reached; and so the limits of a control plane.
 * The first line tells version, digest and origin; the document follows. It is written whole or not at all.
 */
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { digestOf } from "./document-text.js";
import type { VersionMark } from "./repository/rule-repository.js";

export interface SnapshotDocument extends VersionMark {
  readonly document: string;
}

const RULES_FILE = "rules-snapshot";

export class Snapshot {
  readonly #file: string;
  /** Which database or file the rules came from: those of another must not come back by mistake. */
  readonly #origin: string;
  #lastSave: Promise<void> = Promise.resolve();

  constructor({ dataFolder, origin, file = RULES_FILE }: { dataFolder: string; origin: string; file?: string }) {
    this.#file = join(dataFolder, file);
    this.#origin = origin;
  }

  /** Undefined if there is none, or none that is whole and of this origin. */
  async load(): Promise<SnapshotDocument | undefined> {
    const text = await readFile(this.#file, "utf8").catch(() => undefined);
    const at = text?.indexOf("\n") ?? -1;
    if (text === undefined || at < 0) return undefined;
    try {
      const { version, digest, createdAtMs, origin } = JSON.parse(text.slice(0, at));
      const document = text.slice(at + 1);
      const isOurs = origin === this.#origin && Number.isSafeInteger(version) && digest === digestOf(document);
      return isOurs ? { version, digest, createdAtMs: Number(createdAtMs) || 0, document } : undefined;
    } catch {
      return undefined;
    }
  }

  /** One after the other, so that the last to be saved is the last on disk. */
  save(saved: SnapshotDocument): Promise<void> {
    const mine = this.#lastSave.then(() => this.#write(saved));
    this.#lastSave = mine.catch(() => undefined);
    return mine;
  }

  async #write({ version, digest, createdAtMs, document }: SnapshotDocument): Promise<void> {
    const header = JSON.stringify({ version, digest, createdAtMs, origin: this.#origin });
    await mkdir(dirname(this.#file), { recursive: true });
    // A name of its own: several processes may share the folder.
    const draft = `${this.#file}.${process.pid}`;
    const file = await open(draft, "w", 0o600);
    try {
      await file.writeFile(`${header}\n${document}`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, this.#file).catch(async (error) => {
      await rm(draft, { force: true });
      throw error;
    });
  }

  /** Resolves when nothing is being written any more. */
  async settled(): Promise<void> {
    await this.#lastSave;
  }
}
