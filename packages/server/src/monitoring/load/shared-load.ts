/**
 * Publishes this instance's current load to the others: `load:<id>` each second while there is any, and its limit changes,
 * `limit-moves:<id>`, when there are new ones. `read` returns the load of all instances, or rejects without the shared state.
 */
import { type Limiter, readCounterKey } from "sluice";
import { InstanceText } from "../../instance/instance-text.js";
import { parseSharedText } from "../../instance/parse-shared-text.js";
import type { SharedState } from "../../instance/shared-state.js";
import type { LimitMoveView, WaitingKeyView } from "../views/load.js";
import { LimitMoves } from "./limit-moves.js";
import { MOST_LOAD_RULES } from "./load-readings.js";

const LOAD_PREFIX = "load:";
const MOVES_PREFIX = "limit-moves:";
/** TTL: an instance that is gone drops out by itself. */
const LOAD_KEEP_MS = 5_000;
const MOVES_KEEP_MS = 26 * 3_600_000;
const MOST_KEYS = 100;

export interface InstanceLoad {
  readonly instance: string;
  readonly shedding: readonly {
    readonly rule: string;
    readonly signals: Readonly<Record<string, number>>;
    readonly places?: number;
    readonly inFlight?: number;
  }[];
  readonly adaptive: readonly {
    readonly rule: string;
    readonly limit: number;
    readonly utilisation?: number;
    readonly leads: boolean;
  }[];
  readonly waiting: readonly (readonly [rule: string, waiting: number])[];
  readonly keys: readonly WaitingKeyView[];
  readonly moreKeys: boolean;
}

type RuleMove = LimitMoveView & { readonly rule: string };

export interface LoadNow {
  readonly instances: readonly InstanceLoad[];
  readonly moves: readonly RuleMove[];
}

type SharedLoadSource = Pick<Limiter, "sheddingStats" | "adaptiveStats" | "waitingStats" | "waitingKeys" | "on">;

export class SharedLoad {
  readonly #limiter: SharedLoadSource;
  readonly #instance: string;
  readonly #shared: SharedState;
  readonly #moves: LimitMoves;
  readonly #loadText: InstanceText;
  readonly #movesText: InstanceText;
  #sharedMoves = 0;

  constructor({ limiter, instance, shared }: { limiter: SharedLoadSource; instance: string; shared: SharedState }) {
    this.#limiter = limiter;
    this.#instance = instance;
    this.#shared = shared;
    this.#moves = new LimitMoves(limiter, instance);
    this.#loadText = new InstanceText(shared, `${LOAD_PREFIX}${instance}`);
    this.#movesText = new InstanceText(shared, `${MOVES_PREFIX}${instance}`);
  }

  /** Rejects if the shared state is unreachable. */
  async share(): Promise<void> {
    const load = this.#own();
    const isEmpty = load.shedding.length + load.adaptive.length + load.waiting.length === 0;
    if (!isEmpty) await this.#loadText.write(JSON.stringify(load), LOAD_KEEP_MS);
    const { version } = this.#moves;
    if (version === this.#sharedMoves) return;
    await this.#movesText.write(JSON.stringify(this.#moves.list()), MOVES_KEEP_MS);
    this.#sharedMoves = version;
  }

  /** The load of all instances. This one's is read from memory, so that it is never outdated. */
  async read(): Promise<LoadNow> {
    const [loads, moves] = await Promise.all([this.#shared.readAll(LOAD_PREFIX), this.#shared.readAll(MOVES_PREFIX)]);
    const own = this.own();
    const others = [...loads].flatMap(([name, text]) => {
      const load = name === `${LOAD_PREFIX}${this.#instance}` ? undefined : parseSharedText<InstanceLoad>(text);
      return load == null ? [] : [load];
    });
    const othersMoves = [...moves].flatMap(([name, text]) =>
      name === `${MOVES_PREFIX}${this.#instance}` ? [] : (parseSharedText<RuleMove[]>(text) ?? []),
    );
    return { instances: [...own.instances, ...others], moves: [...own.moves, ...othersMoves] };
  }

  /** This instance's load only. */
  own(): LoadNow {
    return { instances: [this.#own()], moves: this.#moves.list() };
  }

  #own(): InstanceLoad {
    const keys = this.#limiter.waitingKeys();
    return {
      instance: this.#instance,
      shedding: this.#limiter
        .sheddingStats()
        .slice(0, MOST_LOAD_RULES)
        .map(({ rule, signals, limit, inFlight }) => ({
          rule,
          signals,
          ...(limit !== undefined && { places: Math.round(limit), inFlight }),
        })),
      adaptive: this.#limiter
        .adaptiveStats()
        .slice(0, MOST_LOAD_RULES)
        .map(({ rule, limit, utilisation, leads }) => ({
          rule,
          limit,
          leads,
          ...(utilisation !== undefined && { utilisation }),
        })),
      waiting: [...this.#limiter.waitingStats()].slice(0, MOST_LOAD_RULES),
      keys: keys.slice(0, MOST_KEYS).map(({ rule, key, waiting, longestMs, lastTurnMs }) => {
        const { attributes } = readCounterKey(key);
        return {
          rule,
          ...(attributes !== undefined && { attributes }),
          waiting,
          longestMs: Math.round(longestMs),
          lastTurnMs: Math.max(0, Math.round(lastTurnMs)),
        };
      }),
      moreKeys: keys.length > MOST_KEYS,
    };
  }
}
