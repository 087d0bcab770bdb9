/**
 * Reservations in Redis: one script call settles or extends one, within the reach of one script (settle.lua).
 */
import { type HoldRow, mostToHold } from "../../algorithms/hold.js";
import { MOST_UNITS, type Verdict, verdict } from "../../algorithms/model.js";
import {
  type Amounts,
  type ExtendReply,
  type HeldCounter,
  holdDigest,
  type ReservationState,
  type Reserved,
  type SettleReply,
} from "../reserved.js";
import type { RedisCalls } from "./calls.js";
import type { Argument } from "./connection.js";
import { redisSays } from "./failure.js";
import { msOf, policyArguments, reasons } from "./wire.js";

interface HoldsOptions {
  readonly calls: RedisCalls;
  /** Redis's clock now, as far as we know. */
  readonly serverNowMs: () => number;
  /** Called with the keys of counters that have more room now. */
  readonly onSettled: (keys: readonly string[]) => void;
}

/** In the order of the codes in settle.lua. */
const states: readonly ReservationState[] = ["unknown", "open", "settled", "expired"];

export class Holds {
  readonly #options: HoldsOptions;

  constructor(options: HoldsOptions) {
    this.#options = options;
  }

  async settle(reserved: Reserved, amounts: Amounts, key: string): Promise<SettleReply> {
    const { counters } = reserved;
    const reply = await this.#run("settle", reserved, amounts, key);
    this.#options.onSettled(counters.map((counter) => counter.key));
    return readSettled(reply, counters.length);
  }

  async extend(reserved: Reserved, amounts: Amounts, key: string): Promise<ExtendReply> {
    const [nowUs, code, ...rest] = (await this.#run("extend", reserved, amounts, key)).map(Number);
    const nowMs = msOf(nowUs);
    const state = states[code!]!;
    if (state !== "open") return { nowMs, state, verdicts: [], held: [] };
    const held: number[] = [];
    const verdicts = reserved.counters.map((_, i): Verdict => {
      const [units, found, remaining, resetAfterMs, retryAfterMs] = rest.slice(i * 5, i * 5 + 5) as [
        number,
        number,
        number,
        number,
        number,
      ];
      held.push(unitsIn(units));
      const made = verdict((found & 1) === 1, unitsIn(remaining), retryAfterMs, resetAfterMs, reasons[found >> 2]);
      made.charged = (found & 2) === 2;
      return made;
    });
    return { nowMs, state, verdicts, held };
  }

  async stateOf(reserved: Reserved, key: string): Promise<ReservationState> {
    const text = await this.#options.calls.call("GET", key);
    const [, digest, endsAtMs, state] = /^2 (\S+) (\d+) (\w+)\n/.exec(String(text)) ?? [];
    if (digest !== holdDigest(reserved)) return "unknown";
    if (state === "settled") return state;
    return this.#options.serverNowMs() >= Number(endsAtMs) ? "expired" : "open";
  }

  /** Marks a reservation as settled, and leaves its counters to the caller: for slots that are moving. */
  async claim(
    reserved: Reserved,
    amounts: Amounts,
    key: string,
  ): Promise<{ reply: SettleReply; rows: readonly HoldRow[]; nowMs: number }> {
    const { counters, ttlMs } = reserved;
    const args = ["claim", holdDigest(reserved), ttlMs, counters.length];
    const found = await this.#options.calls.run(
      "settle",
      [key],
      [...args, ...counters.map(({ cost }) => amounts.get(cost) ?? -1)],
    );
    const reply = readSettled(found as unknown[], counters.length);
    const rows = reply.isNew
      ? (found as unknown[]).slice(2 + 2 * counters.length).map((row) => readRow(String(row)))
      : [];
    return { reply, rows, nowMs: msOf((found as unknown[])[0]) };
  }

  /** Writes the hold of a request whose counters were charged one by one. */
  async put(reserved: Reserved, row: HoldRow, key: string, endsAtMonotonicMs: number): Promise<void> {
    const args = [
      "put",
      holdDigest(reserved),
      reserved.ttlMs,
      row.units.length,
      row.entryId,
      row.atMs,
      ...row.units,
      ...row.owed,
    ];
    await this.#options.calls.run("settle", [key], args, endsAtMonotonicMs);
  }

  async #run(step: "settle" | "extend", reserved: Reserved, amounts: Amounts, key: string): Promise<unknown[]> {
    const { counters, ttlMs } = reserved;
    const keys = [key, ...counters.map((counter) => counter.key)];
    const digest = holdDigest(reserved);
    const send = async (nowMs: number): Promise<unknown[]> => {
      const args: Argument[] = [step, digest, ttlMs, counters.length];
      for (const counter of counters) {
        const amount = amounts.get(counter.cost) ?? -1;
        args.push(...counterArguments(counter, step === "extend" ? mostToHold(amount, counter) : amount, nowMs));
      }
      return (await this.#options.calls.run("settle", keys, args)) as unknown[];
    };
    return await send(this.#options.serverNowMs()).catch((error: unknown) => {
      // As in decide-queue.ts: our clock was more than a window off, and Redis reported its own. Nothing was written.
      const calendar = redisSays(error, /CALENDAR (\d+)/);
      if (calendar === null) throw error;
      return send(Number(calendar[1]));
    });
  }
}

function counterArguments({ policy, mode, finishes }: HeldCounter, amount: number, nowMs: number): Argument[] {
  return [...policyArguments(policy, nowMs), amount, mode === "enforce" ? 0 : 1, finishes ? 1 : 0];
}

function readSettled(reply: readonly unknown[], count: number): SettleReply {
  const code = Number(reply[1]);
  // This call settled what was open.
  const isNew = states[code] === "open";
  const state = isNew ? "settled" : states[code]!;
  const isKnown = state !== "unknown";
  const counters = Array.from({ length: count }, (_, i) => ({
    state,
    held: isKnown ? unitsIn(reply[2 + 2 * i]) : 0,
    charged: isKnown ? unitsIn(reply[3 + 2 * i]) : 0,
  }));
  return { counters, isNew };
}

/** Some clients of Redis read 2^53 - 1 as 2^53. */
function unitsIn(value: unknown): number {
  const units = Number(value);
  return Math.max(-MOST_UNITS, Math.min(units, MOST_UNITS));
}

function readRow(text: string): HoldRow {
  const [entryId, atMs, ...rest] = text.split(" ");
  const numbers = rest.map(Number);
  const count = numbers.length / 2;
  return { entryId: entryId!, atMs: Number(atMs), units: numbers.slice(0, count), owed: numbers.slice(count) };
}
