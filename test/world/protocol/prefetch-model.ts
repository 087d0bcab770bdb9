/**
 * The prefetch protocol as a state machine: holders fetch units of one counter, use them in process, and settle with the next fetch.
 * Requests and replies may be lost, late, doubled and out of order; a holder may crash and come back under another name. Time goes in
 * steps; a message takes none or many.
 *
 * What must hold: uses in any window (for a bucket: in any span) stay within the limit. Each mistake below is a variant that must be
 * found broken: a check that passes it would prove nothing.
 *   grant-plus-window    units that were never settled count from their grant, not from their end
 *   term-from-reply      a holder counts the term from when the reply came, not from when it asked
 *   stamp-of-first-use   a settlement charges all uses at the time of the first of them, or of another window
 *   no-sequence          the store takes a doubled or late fetch for a new one: a lost reply is granted twice
 *   late-reply           a holder takes the reply to a fetch that it has given up
 *   ended-units          units that ended in hand count as in hand when the next grant comes
 *   past-the-window      units of a fixed window live on in the next, whose counter does not know of them
 */
import type { Move, Protocol } from "./explore.js";
import { serveShipped } from "./shipped-grants.js";
import { type HolderEvent, handAfter } from "./shipped-holder.js";

export type Mistake =
  | "grant-plus-window"
  | "term-from-reply"
  | "stamp-of-first-use"
  | "no-sequence"
  | "late-reply"
  | "ended-units"
  | "past-the-window";

export interface PrefetchConstants {
  readonly algorithm: "rolling-window" | "bucket" | "fixed-window";
  /** How often each holder may ask. */
  readonly fetches: readonly number[];
  readonly limit: number;
  /** Of a bucket: one token is refilled every so many steps of time. */
  readonly windowSteps: number;
  readonly termSteps: number;
  /** A grant is half of what is left, as the store's; else all of it. */
  readonly half: boolean;
  readonly doubles: number;
  readonly crashes: number;
  /** The store is the library's own (`shipped-grants.ts`): a rolling window only. */
  readonly shipped?: boolean;
  /** The holders are the library's own (`shipped-holder.ts`). */
  readonly shippedHolder?: boolean;
  readonly mistake?: Mistake;
}

interface Holder {
  readonly name: number;
  readonly seq: number;
  readonly used: number;
  readonly units: number;
  readonly end: number;
  /** The fetch under way. */
  readonly asked: { readonly seq: number; readonly held: number; readonly at: number } | undefined;
  readonly firstUse: number;
  readonly fetchesLeft: number;
  /** Of a holder that is the library's own: all that has happened to it. */
  readonly events: readonly HolderEvent[];
}

interface Request {
  readonly name: number;
  readonly seq: number;
  readonly used: number;
  readonly held: number;
  readonly firstUse: number;
  /** Settles, and wants nothing. */
  readonly isLast?: boolean;
}

interface Reply {
  readonly name: number;
  readonly seq: number;
  readonly units: number;
  readonly kept: number;
  readonly life: number;
}

/** What the store has granted to a holder and not seen settled. */
interface Granted {
  readonly name: number;
  readonly seq: number;
  readonly used: number;
  readonly units: number;
  readonly granted: number;
  readonly kept: number;
  readonly at: number;
  readonly end: number;
}

export interface PrefetchState {
  readonly now: number;
  /** Charges by their time; of a bucket, all that still matter. */
  readonly charges: readonly number[];
  readonly grants: readonly Granted[];
  readonly holders: readonly Holder[];
  readonly requests: readonly Request[];
  readonly replies: readonly Reply[];
  /** What really happened. */
  readonly uses: readonly number[];
  readonly doublesLeft: number;
  readonly crashesLeft: number;
}

export function prefetchProtocol(constants: PrefetchConstants): Protocol<PrefetchState> {
  const { algorithm, limit, windowSteps, termSteps, mistake } = constants;
  const isRolling = algorithm === "rolling-window";
  const windowOf = (step: number): number => Math.floor(step / windowSteps);

  /** The tokens that are out of a bucket, or the units in the window. */
  function counted(charges: readonly number[], now: number): number {
    if (isRolling) return charges.filter((at) => at > now - windowSteps).length;
    if (algorithm === "fixed-window") return charges.filter((at) => windowOf(at) === windowOf(now)).length;
    return Math.ceil(owed(charges, now) / windowSteps);
  }

  /** In parts of a token, of which one is refilled each step. */
  function owed(charges: readonly number[], now: number): number {
    let deficit = 0;
    let last = 0;
    for (const at of charges) {
      deficit = Math.max(0, deficit - (at - last)) + windowSteps;
      last = at;
    }
    return Math.max(0, deficit - (now - last));
  }

  function broken({ uses, now }: PrefetchState): string | undefined {
    const found = counted(uses, now);
    return found > limit ? `${found} of ${limit} used` : undefined;
  }

  function tick(state: PrefetchState): PrefetchState {
    const now = state.now + 1;
    // The library looks at ended units when it is asked, and charges them at their end.
    const ended = constants.shipped === true ? [] : state.grants.filter(({ end }) => end <= now);
    const charges = [...state.charges];
    // A fixed window gives its units back with its end.
    for (const { units, at, end } of ended) {
      const stamp = mistake === "grant-plus-window" ? at : end;
      for (let i = 0; i < units; i++) charges.push(stamp);
    }
    return {
      ...state,
      now,
      charges: relevant(charges, now),
      grants: state.grants.filter((one) => !ended.includes(one)),
      uses: relevant(state.uses, now),
    };
  }

  /** In order, without what no window can hold any more. */
  function relevant(times: readonly number[], now: number): number[] {
    const kept =
      algorithm === "bucket"
        ? times.filter((at) => at > now - windowSteps * limit * 2)
        : times.filter((at) => (isRolling ? at > now - windowSteps : windowOf(at) >= windowOf(now)));
    return kept.sort((a, b) => a - b);
  }

  function use(state: PrefetchState, holder: Holder): PrefetchState {
    const firstUse = holder.firstUse < 0 ? state.now : holder.firstUse;
    const used = { ...holder, units: holder.units - 1, used: holder.used + 1, firstUse };
    const after = constants.shippedHolder === true ? { ...used, ...happened(holder, { kind: "use" }) } : used;
    return { ...withHolder(state, after), uses: relevant([...state.uses, state.now], state.now) };
  }

  /** What the library's holder has in hand then. */
  function happened({ events, name }: Holder, event: HolderEvent): Pick<Holder, "events" | "units" | "end"> {
    const all = [...events, event];
    const { units, end } = handAfter(all, { name, termSteps, mistake });
    return { events: all, units, end };
  }

  function askByLibrary(state: PrefetchState, holder: Holder, kind: "ask" | "give-back"): PrefetchState {
    const { name, fetchesLeft } = holder;
    const events = [...holder.events, { kind, at: state.now }];
    const { units, end, sent } = handAfter(events, { name, termSteps, mistake });
    const { seq, used, held } = sent!;
    const asked = { seq, held, at: state.now };
    const request = { name, seq, used, held, firstUse: -1, isLast: kind === "give-back" };
    return {
      ...withHolder(state, { ...holder, events, seq, used, units, end, asked, fetchesLeft: fetchesLeft - 1 }),
      requests: [...state.requests, request],
    };
  }

  function ask(state: PrefetchState, holder: Holder): PrefetchState {
    if (constants.shippedHolder === true) return askByLibrary(state, holder, "ask");
    const { name, used, firstUse } = holder;
    const seq = holder.seq + 1;
    const held = state.now < holder.end ? holder.units : 0;
    const units = mistake === "ended-units" ? holder.units : held;
    const asking = { ...holder, seq, units, asked: { seq, held, at: state.now }, fetchesLeft: holder.fetchesLeft - 1 };
    const isHeard = (reply: Reply): boolean => mistake === "late-reply" || reply.name !== name;
    return {
      ...withHolder(state, { ...asking, firstUse: -1 }),
      replies: state.replies.filter(isHeard),
      requests: [...state.requests, { name, seq, used, held, firstUse }],
    };
  }

  function serve(state: PrefetchState, request: Request): PrefetchState {
    if (constants.shipped === true) return serveByLibrary(state, request);
    const { now } = state;
    const { name, seq, used, held } = request;
    const known = state.grants.find((grant) => grant.name === name);
    if (known !== undefined && seq < known.seq && mistake !== "no-sequence") return state;
    if (known !== undefined && seq === known.seq && mistake !== "no-sequence") return replied(state, known, now);
    const outstanding = known?.units ?? 0;
    const kept = Math.min(held, outstanding);
    const spent = known === undefined ? 0 : Math.min(Math.max(0, used - known.used), outstanding - kept);
    const stamp = mistake === "stamp-of-first-use" && request.firstUse >= 0 ? request.firstUse : now;
    const charges = relevant([...state.charges, ...Array.from({ length: spent }, () => stamp)], now);
    const others = state.grants.filter((grant) => grant.name !== name);
    const isCounted = ({ at }: Granted): boolean => mistake !== "past-the-window" || windowOf(at) === windowOf(now);
    const heldByOthers = others.reduce((sum, one) => sum + (isCounted(one) ? one.units : 0), 0);
    const left = Math.max(0, limit - counted(charges, now) - heldByOthers - kept);
    const granted = constants.half ? Math.ceil(left / 2) : left;
    const windowEnd = (windowOf(now) + 1) * windowSteps;
    const isCut = algorithm === "fixed-window" && mistake !== "past-the-window";
    const end = isCut ? Math.min(now + termSteps, windowEnd) : now + termSteps;
    const grant: Granted = { name, seq, used, units: kept + granted, granted, kept, at: now, end };
    return replied({ ...state, charges, grants: [...others, grant] }, grant, now);
  }

  function serveByLibrary(state: PrefetchState, fetch: Request): PrefetchState {
    const { now } = state;
    const charged = (more: readonly { at: number; units: number }[]): number[] =>
      relevant([...state.charges, ...more.flatMap(({ at, units }) => Array.from({ length: units }, () => at))], now);
    const left = (more: { at: number; units: number }[], held: number): number =>
      limit - counted(charged(more), now) - held;
    const served = serveShipped(state.grants, { fetch, now, termSteps, windowSteps, limit, left });
    const charges = charged([served.ended, { at: now, units: served.spent }]);
    const after = { ...state, charges, grants: served.grants.map((one) => ({ ...one, at: 0 })) };
    if (served.granted === undefined) return after;
    const { units, kept, life } = served.granted;
    return replied(after, { ...fetch, units: 0, granted: units, kept, at: 0, end: now + life }, now);
  }

  function replied(state: PrefetchState, { name, seq, granted, kept, end }: Granted, now: number): PrefetchState {
    // A reply that nobody waits for changes nothing.
    const isAwaited = state.holders.some((holder) => holder.name === name && holder.asked?.seq === seq);
    // The library's holder hears late replies too: that it leaves them alone is part of what is checked.
    if (!isAwaited && mistake !== "late-reply" && constants.shippedHolder !== true) return state;
    return { ...state, replies: [...state.replies, { name, seq, units: granted, kept, life: end - now }] };
  }

  function receive(state: PrefetchState, { name, seq, units, kept, life }: Reply): PrefetchState {
    const holder = state.holders.find((one) => one.name === name);
    if (holder === undefined) return state;
    const { asked } = holder;
    if (constants.shippedHolder === true) {
      const heard = happened(holder, { kind: "hear", at: state.now, seq, units, kept, life });
      return withHolder(state, { ...holder, ...heard, asked: asked?.seq === seq ? undefined : asked });
    }
    if (asked?.seq !== seq) {
      if (mistake !== "late-reply") return state;
      return withHolder(state, { ...holder, units: holder.units + units, end: Math.max(holder.end, state.now + life) });
    }
    const inHand = kept < asked.held ? 0 : holder.units;
    const from = mistake === "term-from-reply" ? state.now : asked.at;
    return withHolder(state, { ...holder, units: inHand + units, end: from + life, asked: undefined });
  }

  function moves(state: PrefetchState): Move<PrefetchState>[] {
    const found: Move<PrefetchState>[] = [];
    const { now, holders, requests, replies } = state;
    found.push({ name: `tick ${now + 1}`, to: tick(state) });
    for (const holder of holders) {
      const { name, units, end, fetchesLeft } = holder;
      if (units > 0 && now < end) found.push({ name: `${name} uses`, to: use(state, holder) });
      // To ask again is to give up the fetch under way; who never does waits for a late reply.
      if (fetchesLeft > 0) found.push({ name: `${name} asks`, to: ask(state, holder) });
      if (fetchesLeft > 0 && constants.shippedHolder === true && holder.seq > 0)
        found.push({ name: `${name} gives back`, to: askByLibrary(state, holder, "give-back") });
      if (state.crashesLeft > 0) found.push({ name: `${name} crashes`, to: crash(state, holder) });
    }
    for (const request of requests) {
      const rest = { ...state, requests: requests.filter((other) => other !== request) };
      found.push({ name: `store hears ${request.name}:${request.seq}`, to: serve(rest, request) });
      if (state.doublesLeft > 0) {
        const again = { ...state, doublesLeft: state.doublesLeft - 1 };
        found.push({ name: `store hears ${request.name}:${request.seq}, doubled`, to: serve(again, request) });
      }
    }
    for (const reply of replies) {
      const rest = { ...state, replies: replies.filter((other) => other !== reply) };
      found.push({ name: `${reply.name} hears ${reply.seq}`, to: receive(rest, reply) });
    }
    return found;
  }

  function crash(state: PrefetchState, holder: Holder): PrefetchState {
    const fresh = newHolder(holder.name + constants.fetches.length, holder.fetchesLeft);
    const holders = state.holders.map((other) => (other === holder ? fresh : other));
    // Replies to a name that is gone reach nobody.
    const replies = state.replies.filter(({ name }) => name !== holder.name);
    return { ...state, holders, replies, crashesLeft: state.crashesLeft - 1 };
  }

  const start: PrefetchState = {
    now: 0,
    charges: [],
    grants: [],
    holders: Array.from({ length: constants.fetches.length }, (_, name) => newHolder(name, constants.fetches[name]!)),
    requests: [],
    replies: [],
    uses: [],
    doublesLeft: constants.doubles,
    crashesLeft: constants.crashes,
  };
  /** The same for states that differ only in the order of messages, in units that have ended, or in when they are. */
  function spell(state: PrefetchState): string {
    const { now, charges, grants, holders, requests, replies, uses, doublesLeft, crashesLeft } = state;
    const ages = (times: readonly number[]): string =>
      algorithm === "bucket" ? `${owed(times, now)}` : times.map((at) => now - at).join();
    const phase = algorithm === "fixed-window" ? now % windowSteps : 0;
    const parts = [`${phase}|${ages(charges)}|${ages(uses)}|${doublesLeft}${crashesLeft}`];
    for (const { name, seq, used, units, end, asked, firstUse, fetchesLeft } of holders) {
      const left = Math.max(0, end - now);
      // The library's holder keeps units that have ended while a fetch is under way, which may prolong them.
      const isKept = constants.shippedHolder === true && asked !== undefined;
      const inHand = left > 0 || isKept || mistake === "ended-units" ? units : 0;
      const wait = asked === undefined ? "-" : `${asked.seq},${asked.held},${Math.min(now - asked.at, termSteps)}`;
      const first = mistake !== "stamp-of-first-use" || firstUse < 0 ? "-" : now - firstUse;
      parts.push(`${name},${seq},${used},${inHand},${inHand > 0 ? left : 0},${wait},${first},${fetchesLeft}`);
    }
    parts.push(
      sorted(
        grants,
        (one) =>
          `${one.name},${one.seq},${one.used},${one.units},${one.granted},${one.kept},${Math.max(one.end - now, -windowSteps)}`,
      ),
    );
    const asking = (one: Request): string =>
      `${one.name},${one.seq},${one.used},${one.held},${stampOf(one, now)}${one.isLast ? ",last" : ""}`;
    parts.push(sorted(requests, asking));
    parts.push(sorted(replies, (one) => `${one.name},${one.seq},${one.units},${one.kept},${one.life}`));
    return parts.join(";");
  }

  function stampOf({ firstUse }: Request, now: number): string {
    return mistake === "stamp-of-first-use" && firstUse >= 0 ? `${now - firstUse}` : "-";
  }

  return { start, moves, broken, key: spell };
}

function newHolder(name: number, fetchesLeft: number): Holder {
  return { name, seq: 0, used: 0, units: 0, end: 0, asked: undefined, firstUse: -1, fetchesLeft, events: [] };
}

function withHolder(state: PrefetchState, holder: Holder): PrefetchState {
  return { ...state, holders: state.holders.map((other) => (other.name === holder.name ? holder : other)) };
}

function sorted<T>(list: readonly T[], spelled: (one: T) => string): string {
  if (list.length === 0) return "";
  return list.length === 1 ? spelled(list[0]!) : list.map(spelled).sort().join("/");
}
