/**
 * Rules from a file that is kept elsewhere, in git say: read-only here, and read again when it changes. An edit with mistakes
 * keeps the old rules in force and says so; a start with mistakes uses the snapshot of the last good file, if there is one.
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Mistake, SluiceError } from "sluice";
import { ServiceError } from "../errors.js";
import { type Book, BookInForce, type BookListener } from "./book-in-force.js";
import type { Applied, Configuration, ConfigurationOptions, ConfigurationStatus } from "./configuration.js";
import { digestOf } from "./document-text.js";
import { readValidated } from "./draft.js";
import type { PlacedMistake } from "./rule-file.js";
import { readRuleFileInWorker, readStoredRules } from "./rule-worker.js";
import { Snapshot, type SnapshotDocument } from "./snapshot.js";
import { fileMark, watchFile } from "./watch-file.js";

const POLL_MS = 1_000;

export class FileConfiguration implements Configuration {
  readonly repository = undefined;
  readonly #file: string;
  readonly #options: ConfigurationOptions;
  readonly #inForce: BookInForce;
  readonly #snapshot: Snapshot;
  #lastRead: Promise<unknown> = Promise.resolve();
  #lastError: string | undefined;
  #unwatch: () => void = () => undefined;

  static async start(options: ConfigurationOptions, file: string): Promise<FileConfiguration> {
    const configuration = new FileConfiguration(options, file);
    await configuration.#start();
    return configuration;
  }

  private constructor(options: ConfigurationOptions, file: string) {
    this.#options = options;
    this.#file = file;
    this.#inForce = new BookInForce(options.log);
    this.#snapshot = new Snapshot({ dataFolder: options.dataFolder, origin: `file:${resolve(file)}` });
  }

  get current(): Book {
    return this.#inForce.book;
  }

  onChange(listener: BookListener): () => void {
    return this.#inForce.onChange(listener);
  }

  status(): ConfigurationStatus {
    const lastError = this.#lastError ?? this.#inForce.refusal;
    return {
      version: this.current.version,
      loaded: true,
      source: this.#inForce.source ?? "file",
      database: "none",
      cache: "none",
      ...(lastError !== undefined && { lastError }),
    };
  }

  async #start(): Promise<void> {
    const saved = await this.#snapshot.load();
    const seen = await fileMark(this.#file);
    try {
      await this.#load(saved);
    } catch (error) {
      if (saved === undefined) throw error;
      const rules = await readStoredRules(saved.document);
      await this.#inForce.swap({ rules, version: saved.version }, { digest: saved.digest, source: "snapshot" });
      this.#noteError(error);
    }
    this.#unwatch = watchFile(this.#file, {
      pollMs: this.#options.pollMs ?? POLL_MS,
      seen,
      onChange: () => {
        this.#lastRead = this.#lastRead.then(() => this.#load().catch((error) => this.#noteError(error)));
      },
    });
  }

  /** Versions count the good edits that this data folder has seen; `saved` is where the count goes on. */
  async #load(saved?: SnapshotDocument): Promise<void> {
    const read = await readRuleFileInWorker(await readFile(this.#file, "utf8"));
    if ("mistakes" in read) throw this.#mistaken(read.mistakes);
    const { document } = read;
    const rules = await readValidated(Buffer.from(document));
    const digest = digestOf(document);
    const before = saved ?? { version: this.current.version, digest: "" };
    const version = before.digest === digest ? before.version : before.version + 1;
    this.#lastError = undefined;
    if (this.#inForce.holds({ version: this.current.version, digest })) {
      this.#inForce.source = "file";
      return;
    }
    await this.#inForce.swap({ rules, version }, { digest, source: "file" });
    const { log } = this.#options;
    log.info("rules in force", { version, rules: rules.length, file: this.#file });
    await this.#snapshot
      .save({ version, digest, createdAtMs: Date.now(), document })
      .catch((error) => log.warn("the local snapshot could not be written", { error: String(error) }));
  }

  #mistaken(placed: readonly PlacedMistake[]): SluiceError {
    const mistakes: Mistake[] = placed.map(({ path, message, line, column }) => ({
      path: line === undefined ? `${this.#file}: ${path}` : `${this.#file}:${line}:${column}: ${path}`,
      message,
    }));
    const lines = mistakes.map(({ path, message }) => `${path}: ${message}`);
    return new SluiceError("invalid-rules", lines.join("\n"), { mistakes });
  }

  #noteError(error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    this.#lastError = why;
    const { version } = this.current;
    this.#options.log.error("the rules file was refused, the old rules stay in force", { version, why });
  }

  async apply(): Promise<Applied> {
    throw new ServiceError("rules-from-file", `the rules come from ${this.#file} and cannot be changed here`);
  }

  async close(): Promise<void> {
    this.#unwatch();
    await this.#lastRead;
    await this.#snapshot.settled();
  }
}
