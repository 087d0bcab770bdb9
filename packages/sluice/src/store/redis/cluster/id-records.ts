/**
 * Operations on the record of a request id alone (record.lua): for migrating slots, where Redis only runs scripts with one key, and for
 * parts of a request whose record must be dropped.
 */
import { requestIdKey } from "../../../keys.js";
import { otherRequest, type StoreReply, type StoreRequest } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import type { Argument } from "../connection.js";
import { lateRequest, mayHaveRun } from "../failure.js";
import { numbersNamed, textOrNothing } from "../script-reply.js";
import { decodeRecord, spellReceipt, spellVerdicts } from "../wire.js";

interface Answered {
  readonly nowMs: number;
  /** Empty if nothing was found. */
  readonly answer: unknown;
}

export class IdRecords {
  readonly #calls: RedisCalls;

  constructor(calls: RedisCalls) {
    this.#calls = calls;
  }

  /** The earlier reply to the id, if any. Claims the record for this attempt, unless the request only looks. */
  async see(request: StoreRequest, tag: string, endsAtMonotonicMs: number): Promise<StoreReply | undefined> {
    const { id, charge, entryId, fingerprint } = request;
    if (id === undefined) return undefined;
    const key = requestIdKey(id, tag);
    // As in decide-queue.ts: late at most once for each time that the id is given back meanwhile.
    for (;;) {
      const args = ["see", fingerprint, charge ? entryId : "", this.#calls.sentAtMs(key)];
      const { nowMs, answer } = await this.#run(id, tag, args, endsAtMonotonicMs);
      const text = textOrNothing(answer);
      if (text === undefined) return undefined;
      const reply = decodeRecord(text, nowMs);
      if (reply === "conflict") throw otherRequest();
      if (reply !== "late") return reply;
      if (performance.now() >= endsAtMonotonicMs) throw lateRequest();
    }
  }

  /** False if another attempt's record is there. If the answer is lost, the record is put again; if that fails too, the decision stands. */
  async put(request: StoreRequest, tag: string, reply: StoreReply, endsAtMonotonicMs: number): Promise<boolean> {
    const { id, fingerprint, entryId } = request;
    const args = [
      "put",
      fingerprint,
      entryId,
      spellVerdicts(reply, request.checks),
      spellReceipt(request, reply.timesMs),
    ];
    for (let isLast = false; ; isLast = true) {
      try {
        const { answer } = await this.#run(id!, tag, args, endsAtMonotonicMs);
        return numbersNamed([answer], "written")[0] === 1;
      } catch (error) {
        // A second attempt that was not sent says nothing about the first.
        if (!isLast && !mayHaveRun(error)) throw error;
        if (isLast) return true;
      }
    }
  }

  /** True if dropped: the caller must then give its charge back. `attempt`: gives up its claim; "" for a refund. */
  async drop(id: string, tag: string, { entryId, attempt }: { entryId: string; attempt: string }): Promise<boolean> {
    const { answer } = await this.#run(id, tag, ["drop", entryId, attempt]);
    return numbersNamed([answer], "dropped")[0] !== 0;
  }

  async #run(id: string, tag: string, args: readonly Argument[], endsAtMonotonicMs?: number): Promise<Answered> {
    const key = requestIdKey(id, tag);
    const reply = await this.#calls.run("record", [key], args, endsAtMonotonicMs);
    const [nowMs] = numbersNamed(reply, "now_ms") as [number];
    this.#calls.showed(key, nowMs);
    return { nowMs, answer: (reply as unknown[])[1] };
  }
}
