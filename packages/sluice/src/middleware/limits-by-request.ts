/**
 * A limit that is a function of the request: `limit: (request) => plans[request.user.plan]`.
 * The rule has one override for each number that the function has given; an attribute of the request names its number. So all numbers share
 * the counters of the rule, as overrides do: a client whose plan changes keeps what it has used.
 */
import { SluiceError } from "../errors.js";
import { createLimiter, type Limiter } from "../limiter/limiter.js";
import type { Rule } from "../rules/rule.js";
import type { Store } from "../store/store.js";

export type LimitOf<Request> = (request: Request) => number | Promise<number>;

/** Plans are few. A function that gives each client a number of its own would make a rule without end. */
const MOST_LIMITS = 100;
const ATTRIBUTE = "$limit";

export class LimitsByRequest<Request> {
  readonly limiter: Limiter;
  readonly #limitOf: LimitOf<Request>;
  readonly #ruleOf: (limit: number) => Rule;
  readonly #known: number[] = [];

  /** `ruleOf`: the rule with this limit. Its other mistakes are thrown here. */
  constructor(limitOf: LimitOf<Request>, ruleOf: (limit: number) => Rule, store: Store | undefined) {
    this.#limitOf = limitOf;
    this.#ruleOf = ruleOf;
    this.limiter = createLimiter({ rules: [ruleOf(1)], ...(store !== undefined && { store }) });
  }

  /** The attributes that lead to the request's limit. */
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
    // The rule's own number holds for no request: each names its number.
    this.limiter.setRules([{ ...this.#ruleOf(1), match: { [ATTRIBUTE]: "*" }, overrides } as Rule]);
    this.#known.push(limit);
  }
}
