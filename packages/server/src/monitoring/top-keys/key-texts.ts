/**
 * Writes this instance's top keys and refusals to the shared state: one text per quarter hour and per hour.
 * A period ends within a single turn: whatever is counted while its texts are being written belongs to the next one. Texts of ended periods
 * that could not be written are queued (bounded) and go first.
 */
import { InstanceText } from "../../instance/instance-text.js";
import type { SharedState } from "../../instance/shared-state.js";
import { REFUSALS_PREFIX } from "../refusals/read-key.js";
import type { RefusalLog } from "../refusals/refusal-log.js";
import { spellSummary } from "./key-summary.js";
import { periods } from "./read-top-keys.js";
import type { TopKeys } from "./top-keys.js";

const REFUSALS_KEEP_MS = 6 * 3_600_000;
/** As long as readers look back: two hours of quarters, each with keys and refusals, and the hours. */
const MOST_WAITING = 18;

interface KeyTextsOptions {
  readonly topKeys: Pick<TopKeys, "quarter" | "hour" | "endQuarter">;
  readonly refusals: Pick<RefusalLog, "quarter" | "endQuarter">;
  readonly shared: SharedState;
  readonly instance: string;
}

interface Waiting {
  readonly text: InstanceText;
  readonly content: string;
  readonly keepMs: number;
}

export class KeyTexts {
  readonly #options: KeyTextsOptions;
  #periodMs: number;
  #quarterText: InstanceText;
  #hourText: InstanceText;
  #refusalsText: InstanceText;
  readonly #waiting: Waiting[] = [];
  /** How often the clock stepped back into an earlier period, whose texts are already written. */
  #stepsBack = 0;

  constructor(options: KeyTextsOptions, nowMs: number) {
    this.#options = options;
    this.#periodMs = nowMs;
    this.#quarterText = this.#keysText("hour");
    this.#hourText = this.#keysText("day");
    this.#refusalsText = this.#newRefusalsText();
  }

  /** Ends the quarter if it is over, and writes the queue. Rejects, like the others, if the shared state is unreachable. */
  async turn(nowMs: number): Promise<void> {
    if (startOf("hour", nowMs) !== startOf("hour", this.#periodMs)) this.#endQuarter(nowMs);
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      await next.text.write(next.content, next.keepMs);
      this.#waiting.shift();
    }
  }

  async writeQuarter(): Promise<void> {
    for (const { text, content, keepMs } of this.#quarter()) await text.write(content, keepMs);
  }

  async writeHour(): Promise<void> {
    const { text, content, keepMs } = this.#hour();
    await text.write(content, keepMs);
  }

  #endQuarter(nowMs: number): void {
    const { topKeys, refusals } = this.#options;
    const endsHour = startOf("day", nowMs) !== startOf("day", this.#periodMs);
    this.#waiting.push(...this.#quarter());
    if (endsHour) this.#waiting.push(this.#hour());
    if (this.#waiting.length > MOST_WAITING) this.#waiting.splice(0, this.#waiting.length - MOST_WAITING);
    topKeys.endQuarter({ endsHour });
    refusals.endQuarter();
    if (nowMs < this.#periodMs) this.#stepsBack++;
    this.#periodMs = nowMs;
    this.#quarterText = this.#keysText("hour");
    this.#refusalsText = this.#newRefusalsText();
    if (endsHour) this.#hourText = this.#keysText("day");
  }

  #quarter(): Waiting[] {
    const keys = summaryOf(this.#quarterText, spellSummary(this.#options.topKeys.quarter()), "hour");
    const refusals = this.#options.refusals.quarter();
    if (refusals.length === 0) return [keys];
    return [keys, { text: this.#refusalsText, content: JSON.stringify(refusals), keepMs: REFUSALS_KEEP_MS }];
  }

  #hour(): Waiting {
    return summaryOf(this.#hourText, spellSummary(this.#options.topKeys.hour()), "day");
  }

  #newRefusalsText(): InstanceText {
    return this.#newText(`${REFUSALS_PREFIX}${startOf("hour", this.#periodMs)}`);
  }

  #keysText(window: keyof typeof periods): InstanceText {
    return this.#newText(`${periods[window].prefix}${startOf(window, this.#periodMs)}`);
  }

  /** Readers merge all texts of a period, so a period that recurs gets a second text instead of overwriting its first. */
  #newText(name: string): InstanceText {
    const { shared, instance } = this.#options;
    return new InstanceText(shared, `${name}:${instance}${this.#stepsBack === 0 ? "" : `~${this.#stepsBack}`}`);
  }
}

function startOf(window: keyof typeof periods, atMs: number): number {
  return atMs - (atMs % periods[window].lengthMs);
}

function summaryOf(text: InstanceText, content: string, window: keyof typeof periods): Waiting {
  const { lengthMs, keepMs } = periods[window];
  return { text, content, keepMs: keepMs + 2 * lengthMs };
}
