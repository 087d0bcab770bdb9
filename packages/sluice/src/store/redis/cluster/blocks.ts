/**
 * Blocks while a slot is being migrated, when a script can have only one key: each block is read before the counters are decided, and begun
 * after. The two steps are not atomic: a request that arrives between them is decided by its counter alone.
 */
import { beginsBlock, putOff, refuseBlocked } from "../../../algorithms/block.js";
import type { Check, CheckBlock } from "../../../check.js";
import type { StoreReply, StoreRequest } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import { numbersNamed } from "../script-reply.js";

interface SeenBlock {
  readonly leftMs: number;
  readonly nextMs: number;
}

export class Blocks {
  readonly #calls: RedisCalls;

  constructor(calls: RedisCalls) {
    this.#calls = calls;
  }

  /** `decide` gets the request without its blocks; if one of them refuses it, only to look. */
  async around(
    request: StoreRequest,
    endsAtMonotonicMs: number,
    decide: (request: StoreRequest) => Promise<StoreReply>,
  ): Promise<StoreReply> {
    const { checks } = request;
    if (checks.every(({ block }) => block === undefined)) return await decide(request);
    const seen = await Promise.all(checks.map(({ block }) => block && this.#step("see", block, endsAtMonotonicMs)));
    const isBlocked = checks.some(
      ({ plan, cost }, i) => plan.mode === "enforce" && cost > 0 && (seen[i]?.leftMs ?? 0) > 0,
    );
    const bare = checks.map(({ block: _, ...check }): Check => check);
    const reply = await decide({ ...request, checks: bare, charge: request.charge && !isBlocked });
    await Promise.all(
      checks.map(async ({ block, cost }, i) => {
        const found = reply.verdicts[i]!;
        if (block === undefined || cost === 0) return;
        const { leftMs, nextMs } = seen[i]!;
        if (leftMs > 0) return refuseBlocked(found, leftMs);
        if (found.allowed || !beginsBlock(found.reason)) return;
        putOff(found, nextMs);
        if (request.charge) await this.#step("begin", block, endsAtMonotonicMs);
      }),
    );
    return reply;
  }

  async #step(step: "see" | "begin", { key, lengthsMs }: CheckBlock, endsAtMonotonicMs: number): Promise<SeenBlock> {
    const args = [step, lengthsMs.length, ...lengthsMs];
    const reply = await this.#calls.run("block", [key], args, endsAtMonotonicMs);
    const [, leftMs, nextMs] = numbersNamed(reply, "now_us", "left_ms", "next_ms") as [number, number, number];
    return { leftMs, nextMs };
  }
}
