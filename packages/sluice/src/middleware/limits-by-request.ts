/**
 * A limit that is a function of the request: `limit: (request) => plans[request.user.plan]`. The rule has one override for each number that
 * the function has returned; an attribute of the request selects its number. So all numbers share the rule's counters, as overrides do: a
 * client whose plan changes keeps what it has used.
 */
import { SluiceError } from "../errors.js";
import { createLimiter, type Limiter } from "../limiter/limiter.js";
import type { Rule } from "../rules/rule.js";
import type { Store } from "../store/store.js";

export type LimitOf<Request> = (request: Request) => number | Promise<number>;

/** Plans are few. A function that returns a different number for each client would make the rule grow without bound. */
const MOST_LIMITS = 100;
const ATTRIBUTE = "$limit";

export class LimitsByRequest<Request> {
  readonly limiter: Limiter;
  readonly #limitOf: LimitOf<Request>;
  readonly #ruleOf: (limit: number) => Rule;
  readonly #known: number[] = [];

  /** `ruleOf`: the rule with this limit. Other mistakes in it throw here. */
  constructor(limitOf: LimitOf<Request>, ruleOf: (limit: number) => Rule, store: Store | undefined) {
    this.#limitOf = limitOf;
    this.#ruleOf = ruleOf;
    this.limiter = createLimiter({ rules: [ruleOf(1)], ...(store !== undefined && { store }) });
  }

  /** The attributes that select the request's limit. */
  async attributesOf(request: Request): Promise<Readonly<Record<string, number>>> {
    const limit = await this.#limitOf(request);
    if (!this.#known.includes(limit)) this.#add(limit);
    return { [ATTRIBUTE]: limit };
  }

  #add(limit: number): void {
    if (this.#known.length >= MOST_LIMITS) {
      const got = `a further one, ${limit}`;
      throw new SluiceError(
        "invalid-setting",
        `limit: expected a function with at most ${MOST_LIMITS} results, got ${got}`,
      );
    }
    if (!Number.isSafeInteger(limit) || limit < 0) {
      throw new SluiceError(
        "invalid-setting",
        `limit: expected a function that gives a whole number, got ${String(limit)}`,
      );
    }
    const overrides = [...this.#known, limit].map((one) => ({ match: { [ATTRIBUTE]: one }, limit: one }));
    // The rule's own number applies to no request, because each selects its number.
    this.limiter.setRules([{ ...this.#ruleOf(1), match: { [ATTRIBUTE]: "*" }, overrides } as Rule]);
    this.#known.push(limit);
  }
}
