/**
 * Reservations in Redis: one script call settles or extends a reservation whose keys one script reaches (settle.lua).
 */
import { type HoldRow, mostToHold } from "../../algorithms/hold.js";
import { MOST_UNITS, type Verdict, verdict } from "../../algorithms/model.js";
import {
  type Amounts,
  chargingPolicy,
  type ExtendReply,
  type HeldCounter,
  holdDigest,
  type ReservationState,
  type Reserved,
  type SettleReply,
} from "../reserved.js";
import type { RedisCalls } from "./calls.js";
import type { Argument } from "./connection.js";
import { CALENDAR, redisSays } from "./failure.js";
import { arrayIn, malformed, numbersNamed } from "./script-reply.js";
import { isVerdictCode, msOf, policyArguments, reasons } from "./wire.js";

interface HoldsOptions {
  readonly calls: RedisCalls;
  /** Redis's current time, as far as we know. */
  readonly serverNowMs: () => number;
  /** Called with the keys of counters that have more room now. */
  readonly onSettled: (keys: readonly string[]) => void;
}

/** In the order of the codes in settle.lua. */
const states: readonly ReservationState[] = ["unknown", "open", "settled", "expired", "settled"];
/** Two of those codes: settled by this call, or by an earlier one of the same name. */
const [NOW, BEFORE] = [1, 4];

/** The costs that a settlement reports, and its name. */
export interface NamedAmounts {
  readonly amounts: Amounts;
  readonly name: string;
}

const SETTLED = "an array of now_us, state and units";
/** The fields of each counter in the reply of settle.lua. */
const EXTENDED = ["units held", "verdict", "remaining", "reset_after_ms", "retry_after_ms"] as const;
type Extended = [number, number, number, number, number];

export class Holds {
  readonly #options: HoldsOptions;

  constructor(options: HoldsOptions) {
    this.#options = options;
  }

  async settle(reserved: Reserved, settlement: NamedAmounts, key: string): Promise<SettleReply> {
    const { counters } = reserved;
    const reply = await this.#run("settle", reserved, settlement, key);
    this.#options.onSettled(counters.map((counter) => counter.key));
    return readSettled(reply, counters.length);
  }

  async extend(reserved: Reserved, amounts: Amounts, key: string): Promise<ExtendReply> {
    const reply = await this.#run("extend", reserved, { amounts, name: "" }, key);
    const { nowMs, state } = readState(reply);
    if (state !== "open") return { nowMs, state, verdicts: [], held: [] };
    const held: number[] = [];
    const verdicts = reserved.counters.map((_, i): Verdict => {
      const of = reply.slice(2 + i * 5);
      const [units, found, remaining, resetAfterMs, retryAfterMs] = numbersNamed(of, ...EXTENDED) as Extended;
      if (!isVerdictCode(found)) throw malformed("the code of a verdict", found);
      held.push(unitsIn(units));
      const made = verdict((found & 1) === 1, unitsIn(remaining), retryAfterMs, resetAfterMs, reasons[found >> 2]);
      made.charged = (found & 2) === 2;
      return made;
    });
    return { nowMs, state, verdicts, held };
  }

  async stateOf(reserved: Reserved, key: string): Promise<ReservationState> {
    const args = ["state", holdDigest(reserved), reserved.ttlMs, 0, ""];
    return readState(arrayIn(await this.#options.calls.run("settle", [key], args), SETTLED)).state;
  }

  /** Marks a reservation as settled and leaves its counters to the caller: for slots that are being migrated. */
  async claim(
    reserved: Reserved,
    { amounts, name }: NamedAmounts,
    key: string,
  ): Promise<{ reply: SettleReply; rows: readonly HoldRow[]; nowMs: number }> {
    const { counters, ttlMs } = reserved;
    const args = ["claim", holdDigest(reserved), ttlMs, counters.length, name];
    const found = await this.#options.calls.run(
      "settle",
      [key],
      [...args, ...counters.map(({ cost }) => amounts.get(cost) ?? -1)],
    );
    const given = arrayIn(found, SETTLED);
    const reply = readSettled(given, counters.length);
    const rows = reply.isNew ? given.slice(2 + 2 * counters.length).map(readRow) : [];
    return { reply, rows, nowMs: msOf(given[0]) };
  }

  /** Writes the hold of a request whose counters were charged one by one. */
  async put(reserved: Reserved, rows: readonly HoldRow[], key: string, endsAtMonotonicMs: number): Promise<void> {
    const { counters, ttlMs } = reserved;
    const written = rows.flatMap(({ entryId, atMs, units, owed }) => [entryId, atMs, ...units, ...owed]);
    const args = ["put", holdDigest(reserved), ttlMs, counters.length, "", ...written];
    await this.#options.calls.run("settle", [key], args, endsAtMonotonicMs);
  }

  async #run(
    step: "settle" | "extend",
    reserved: Reserved,
    { amounts, name }: NamedAmounts,
    key: string,
  ): Promise<readonly unknown[]> {
    const { counters, ttlMs } = reserved;
    const keys = [key, ...counters.map((counter) => counter.key)];
    const digest = holdDigest(reserved);
    const send = async (nowMs: number): Promise<readonly unknown[]> => {
      const args: Argument[] = [step, digest, ttlMs, counters.length, name];
      for (const counter of counters) {
        const amount = amounts.get(counter.cost) ?? -1;
        args.push(...counterArguments(counter, step === "extend" ? mostToHold(amount, counter) : amount, nowMs));
      }
      return arrayIn(await this.#options.calls.run("settle", keys, args), SETTLED);
    };
    return await send(this.#options.serverNowMs()).catch((error: unknown) => {
      // As in decide-queue.ts: our clock was off by more than a window, and Redis reported its own. Nothing was written.
      const calendar = redisSays(error, CALENDAR);
      if (calendar === null) throw error;
      return send(Number(calendar[1]));
    });
  }
}

function counterArguments(counter: HeldCounter, amount: number, nowMs: number): Argument[] {
  const { policy, mode, finishes } = counter;
  const [, ...numbersNow] = policyArguments(chargingPolicy(counter), nowMs);
  return [...policyArguments(policy, nowMs), ...numbersNow, amount, mode === "enforce" ? 0 : 1, finishes ? 1 : 0];
}

function readSettled(reply: readonly unknown[], count: number): SettleReply {
  const { state: found, code } = readState(reply);
  const isNew = code === NOW;
  const isOwn = isNew || code === BEFORE;
  const state = isNew ? "settled" : found;
  if (state === "unknown") {
    return { counters: Array.from({ length: count }, () => ({ state, held: 0, charged: 0 })), isNew, isOwn };
  }
  const counters = Array.from({ length: count }, (_, i) => {
    const [held, charged] = numbersNamed(reply.slice(2 + 2 * i), "units held", "units charged") as [number, number];
    return { state, held: unitsIn(held), charged: unitsIn(charged) };
  });
  return { counters, isNew, isOwn };
}

function readState(reply: readonly unknown[]): { nowMs: number; state: ReservationState; code: number } {
  const [nowUs, code] = numbersNamed(reply, "now_us", "state") as [number, number];
  const state = states[code];
  if (state === undefined) throw malformed("the state of a reservation as element 1", reply[1]);
  return { nowMs: msOf(nowUs), state, code };
}

/** Some Redis clients read 2^53 - 1 as 2^53. */
function unitsIn(units: number): number {
  return Math.max(-MOST_UNITS, Math.min(units, MOST_UNITS));
}

function readRow(row: unknown): HoldRow {
  const [entryId, ...rest] = String(row).split(" ");
  const names = rest.map((_, i) => (i === 0 ? "at_ms" : "units"));
  // The time, then two numbers per counter.
  if (rest.length % 2 === 0) throw malformed("a row of a reservation", row);
  const [atMs, ...numbers] = numbersNamed(rest, ...names);
  const count = numbers.length / 2;
  return { entryId: entryId!, atMs: atMs!, units: numbers.slice(0, count), owed: numbers.slice(count) };
}
