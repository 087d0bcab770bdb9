/**
 * Stores alerts as shared texts, so that they survive restarts and every instance shows the same: `alert:open:SUBJECT` while firing, then
 * `alert:kept:ID` for eight days and at most 500. Every write is a compare-and-swap, so of two concurrent writers one wins.
 */
import { parseSharedText } from "../../instance/parse-shared-text.js";
import type { SharedState } from "../../instance/shared-state.js";
import type { KeptAlert } from "./alert-book.js";

const OPEN = "alert:open:";
const KEPT = "alert:kept:";
/** Separate from the alert, which only the leader writes; any instance may acknowledge. */
const ACKNOWLEDGED = "alert:ack:";
const KEEP_MS = 8 * 24 * 3_600_000;
const MOST_KEPT = 500;

export interface Acknowledgement {
  readonly by: string;
  readonly atMs: number;
  readonly note?: string;
}

export class AlertStore {
  readonly #shared: SharedState;
  /** The texts that this instance last read or wrote, by name. */
  readonly #texts = new Map<string, string>();

  constructor(shared: SharedState) {
    this.#shared = shared;
  }

  async readOpen(): Promise<KeptAlert[]> {
    return await this.#read(OPEN);
  }

  async readKept(): Promise<KeptAlert[]> {
    return await this.#read(KEPT);
  }

  /** False if another instance was faster. */
  async saveOpen(alert: KeptAlert): Promise<boolean> {
    return await this.#write(OPEN + alert.subject, alert, KEEP_MS);
  }

  /**
   * Moves an alert from open to kept. If this fails halfway, the alert is still open and the next round ends it again, under the same id.
   */
  async saveEnded(alert: KeptAlert): Promise<boolean> {
    const saved = await this.saveKept(alert);
    await this.#forget(OPEN + alert.subject);
    if (saved) await this.#boundKept();
    return saved;
  }

  /** By alert id. */
  async readAcknowledgements(): Promise<ReadonlyMap<string, Acknowledgement>> {
    const texts = await this.#shared.readAll(ACKNOWLEDGED);
    return new Map(
      [...texts].flatMap(([name, text]) => {
        const parsed = parseSharedText<Acknowledgement>(text);
        return parsed === undefined ? [] : [[name.slice(ACKNOWLEDGED.length), parsed] as const];
      }),
    );
  }

  /** The last acknowledgement wins. */
  async acknowledge(id: string, given: Acknowledgement): Promise<void> {
    const name = ACKNOWLEDGED + id;
    for (let attempt = 0; attempt < 3; attempt++) {
      const was = await this.#shared.read(name);
      if (await this.#shared.swap(name, { was, now: JSON.stringify(given), keepMs: KEEP_MS })) return;
    }
  }

  async saveKept(alert: KeptAlert): Promise<boolean> {
    return await this.#write(KEPT + alert.id, alert, KEEP_MS);
  }

  async #read(prefix: string): Promise<KeptAlert[]> {
    const texts = await this.#shared.readAll(prefix);
    for (const name of [...this.#texts.keys()])
      if (name.startsWith(prefix) && !texts.has(name)) this.#texts.delete(name);
    return [...texts].flatMap(([name, text]) => {
      this.#texts.set(name, text);
      return parseSharedText<KeptAlert>(text) ?? [];
    });
  }

  async #write(name: string, alert: KeptAlert, keepMs: number): Promise<boolean> {
    const now = JSON.stringify(alert);
    const written = await this.#shared.swap(name, { was: this.#texts.get(name), now, keepMs });
    if (written) this.#texts.set(name, now);
    return written;
  }

  async #forget(name: string): Promise<void> {
    const was = this.#texts.get(name);
    if (was === undefined) return;
    this.#texts.delete(name);
    await this.#shared.swap(name, { was, now: was, keepMs: 1 });
  }

  async #boundKept(): Promise<void> {
    const kept = await this.readKept();
    kept.sort((a, b) => b.startedAtMs - a.startedAtMs);
    for (const { id } of kept.slice(MOST_KEPT)) await this.#forget(KEPT + id);
  }
}
