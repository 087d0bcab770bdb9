/**
 * Steps with the record of a request id alone (record.lua): for slots that are moving, where Redis runs scripts of one key only, and for
 * parts of a request whose record must go.
 */
import { requestIdKey } from "../../../keys.js";
import { otherRequest, type StoreReply, type StoreRequest } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import type { Argument } from "../connection.js";
import { lateRequest, mayHaveRun } from "../failure.js";
import { decodeRecord, recordText, spellReceipt, spellVerdicts } from "../wire.js";

export class IdRecords {
  readonly #calls: RedisCalls;

  constructor(calls: RedisCalls) {
    this.#calls = calls;
  }

  /** The reply that the id was given before, if it was. Claims the record for this attempt, unless the request only looks. */
  async see(request: StoreRequest, tag: string, endsAtMonotonicMs: number): Promise<StoreReply | undefined> {
    const { id, charge, entryId, fingerprint } = request;
    if (id === undefined) return undefined;
    const key = requestIdKey(id, tag);
    // As in decide-queue.ts: late at most once for each time that the id is given back meanwhile.
    for (;;) {
      const args = ["see", fingerprint, charge ? entryId : "", this.#calls.sentAtMs(key)];
      const [nowMs, found] = await this.#run(id, tag, args, endsAtMonotonicMs);
      const text = recordText(found);
      if (text === undefined) return undefined;
      const reply = decodeRecord(text, Number(nowMs));
      if (reply === "conflict") throw otherRequest();
      if (reply !== "late") return reply;
      if (performance.now() >= endsAtMonotonicMs) throw lateRequest();
    }
  }

  /** False if another attempt's record is there. One whose answer is lost is put again; the decision stands if that is lost too. */
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
        const [, written] = await this.#run(id!, tag, args, endsAtMonotonicMs);
        return Number(written) === 1;
      } catch (error) {
        // A second try that was not sent says nothing about the first.
        if (!isLast && !mayHaveRun(error)) throw error;
        if (isLast) return true;
      }
    }
  }

  /** True if dropped: its charge is the caller's to give back. `attempt`: gives up its claim; "" for a refund. */
  async drop(id: string, tag: string, { entryId, attempt }: { entryId: string; attempt: string }): Promise<boolean> {
    const [, dropped] = await this.#run(id, tag, ["drop", entryId, attempt]);
    return Number(dropped) !== 0;
  }

  async #run(id: string, tag: string, args: readonly Argument[], endsAtMonotonicMs?: number): Promise<unknown[]> {
    const key = requestIdKey(id, tag);
    const reply = (await this.#calls.run("record", [key], args, endsAtMonotonicMs)) as unknown[];
    this.#calls.showed(key, Number(reply[0]));
    return reply;
  }
}
