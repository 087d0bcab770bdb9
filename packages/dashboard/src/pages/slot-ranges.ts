/** The slot ranges of a Redis Cluster's leaders, sorted. Pure. */
import type { StoreNode } from "../api/shapes.js";

export const SLOTS = 16_384;

interface SlotRange {
  readonly from: number;
  readonly to: number;
  /** Index in the list of leaders. */
  readonly leader: number;
}

/** Redis writes slots as "0-5460", or "5461" for a single one. */
export function rangesOf(leaders: readonly Pick<StoreNode, "slots">[]): SlotRange[] {
  return leaders
    .flatMap(({ slots = [] }, leader) =>
      slots.map((spelled) => {
        const [from, to = from] = spelled.split("-").map(Number);
        return { from: from!, to: to!, leader };
      }),
    )
    .sort((a, b) => a.from - b.from);
}

/** Number of slots without a leader. */
export function uncovered(ranges: readonly SlotRange[]): number {
  return SLOTS - ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0);
}
