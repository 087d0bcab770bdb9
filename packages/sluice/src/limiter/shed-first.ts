/**
 * Asks the load-shedding rules before the counters. A request that is shed asks no counter. One that is admitted but then refused, or turns
 * out to be malformed, frees its place in flight at once, and the gauges learn nothing from it.
 */
import type { Attributes } from "../rules/rule.js";
import type { RuleBook } from "../rules/rule-book.js";
import type { SheddingBook } from "../rules/shedding-book.js";
import type { Admission, LoadShedder } from "../shedding/load-shedder.js";
import type { MaybePromise } from "../store/store.js";
import type { CheckOptions } from "./check-request.js";
import type { Decision } from "./decision.js";

interface Part {
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
  /** Counted without being asked: it is never shed. */
  readonly charge?: boolean | undefined;
  readonly book?: RuleBook | undefined;
}

interface ShedRequest {
  readonly book: RuleBook;
  readonly parts: readonly Part[];
  readonly looks: boolean;
  readonly options: CheckOptions;
}

export function shedFirst(
  shedder: LoadShedder,
  request: ShedRequest,
  decide: (admission: Admission | undefined) => MaybePromise<Decision>,
): MaybePromise<Decision> {
  const { parts, looks, options } = request;
  const asked: (readonly [SheddingBook, Attributes])[] = [];
  for (const { attributes, cost, charge, book = request.book } of parts) {
    // Cost 0 only looks at counters, and none refuses it.
    if (book.shedding !== undefined && cost !== 0 && charge !== true) asked.push([book.shedding, attributes]);
  }
  const admission = asked.length === 0 ? undefined : shedder.admit(asked, { looks, holds: options.hold !== false });
  const place = admission?.place;
  if (place === undefined) return decide(admission);
  const giveUp = (): boolean => shedder.release(place, "refused");
  const settle = (decision: Decision): Decision => {
    if (!decision.allowed) giveUp();
    return decision;
  };
  try {
    const made = decide(admission);
    if (!(made instanceof Promise)) return settle(made);
    return made.then(settle, (error) => {
      giveUp();
      throw error;
    });
  } catch (error) {
    giveUp();
    throw error;
  }
}
