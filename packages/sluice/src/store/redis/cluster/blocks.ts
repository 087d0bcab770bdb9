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

type Decide = (request: StoreRequest) => Promise<StoreReply>;

export class Blocks {
  readonly #calls: RedisCalls;

  constructor(calls: RedisCalls) {
    this.#calls = calls;
  }

  /** `decide` gets the request without its blocks; if one of them refuses it, only to look, and to make its charges. */
  async around(request: StoreRequest, endsAtMonotonicMs: number, decide: Decide): Promise<StoreReply> {
    const { checks } = request;
    const bare = { ...request, checks: checks.map(({ block: _, ...check }): Check => check) };
    // A charge is made in full, whether or not its key is blocked.
    const blocks = checks.map(({ block, charge }) => (charge === true ? undefined : block));
    if (blocks.every((block) => block === undefined)) return await decide(bare);
    const seen = await Promise.all(blocks.map((block) => block && this.#step("see", block, endsAtMonotonicMs)));
    const isBlocked = checks.some(
      ({ plan, cost }, i) => plan.mode === "enforce" && cost > 0 && (seen[i]?.leftMs ?? 0) > 0,
    );
    const reply = await (isBlocked && request.charge ? refusedButCharges(bare, decide) : decide(bare));
    await Promise.all(
      blocks.map(async (block, i) => {
        const found = reply.verdicts[i]!;
        if (block === undefined || checks[i]!.cost === 0) return;
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

/** The reply to a request that a block refuses: its charges stand all the same. */
async function refusedButCharges(request: StoreRequest, decide: Decide): Promise<StoreReply> {
  const looked = await decide({ ...request, charge: false });
  const isCharge = ({ charge }: Check): boolean => charge === true;
  if (!request.checks.some(isCharge)) return looked;
  const checks = request.checks.map((check) => (isCharge(check) ? check : { ...check, cost: 0 }));
  const charged = await decide({ ...request, checks });
  const replies = checks.map((check) => (isCharge(check) ? charged : looked));
  return {
    ...looked,
    verdicts: replies.map(({ verdicts }, i) => verdicts[i]!),
    timesMs: replies.map(({ timesMs, nowMs }, i) => timesMs?.[i] ?? nowMs),
  };
}
