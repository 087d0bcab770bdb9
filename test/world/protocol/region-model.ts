/**
 * The region protocol as a state machine: an instance fetches from its region's store, which fetches from the global store. Units that
 * a region hands on end no later than its own. Another region competes for the same limit. Messages on both hops may be lost, late,
 * doubled and out of order.
 *
 * What must hold: uses in any window, over all regions, stay within the limit. Each mistake is a variant that must be found broken.
 *   later-end        a region hands units on with an end later than its own
 *   hidden-units     a region tells the global store only what lies in its own pool, not what its instances hold
 *   forgotten-end    a region takes units of an instance that never settled for unused
 */
import type { Move, Protocol } from "./explore.js";

export type RegionMistake = "later-end" | "hidden-units" | "forgotten-end";

export interface RegionConstants {
  readonly limit: number;
  readonly windowSteps: number;
  readonly regionTerm: number;
  readonly instanceTerm: number;
  /** How often the region, its instance and the other region may ask. */
  readonly fetches: readonly [region: number, instance: number, other: number];
  readonly doubles: number;
  readonly mistake?: RegionMistake;
}

/** A holder of units: an instance, or a region towards the global store. */
interface Holder {
  readonly seq: number;
  readonly used: number;
  /** In hand: of a region, what it may hand on. */
  readonly units: number;
  readonly end: number;
  readonly asked: { readonly seq: number; readonly held: number; readonly at: number } | undefined;
  readonly fetchesLeft: number;
}

/** What a store has granted to a holder and not seen settled. */
interface Granted {
  readonly seq: number;
  readonly used: number;
  readonly units: number;
  readonly granted: number;
  readonly kept: number;
  readonly end: number;
}

/** The region and the other one ask the global store; the instance asks the region. */
type Name = "region" | "instance" | "other";

interface Message {
  readonly name: Name;
  readonly seq: number;
}

interface Request extends Message {
  readonly used: number;
  readonly held: number;
}

interface Reply extends Message {
  readonly units: number;
  readonly kept: number;
  readonly life: number;
}

type PerName<T> = Readonly<Record<Name, T>>;

export interface RegionState {
  readonly now: number;
  readonly charges: readonly number[];
  readonly holders: PerName<Holder>;
  readonly grants: PerName<Granted | undefined>;
  readonly requests: readonly Request[];
  readonly replies: readonly Reply[];
  readonly uses: readonly number[];
  readonly doublesLeft: number;
}

const NAMES: readonly Name[] = ["region", "instance", "other"];

export function regionProtocol(constants: RegionConstants): Protocol<RegionState> {
  const { limit, windowSteps, regionTerm, instanceTerm, mistake } = constants;
  const recent = (times: readonly number[], now: number): number[] => times.filter((at) => at > now - windowSteps);

  function withHolder(state: RegionState, name: Name, changes: Partial<Holder>): RegionState {
    return { ...state, holders: { ...state.holders, [name]: { ...state.holders[name], ...changes } } };
  }

  function withGrant(state: RegionState, name: Name, granted: Granted | undefined): RegionState {
    return { ...state, grants: { ...state.grants, [name]: granted } };
  }

  function tick(before: RegionState): RegionState {
    const now = before.now + 1;
    let state: RegionState = { ...before, now };
    const { instance } = state.grants;
    if (instance !== undefined && instance.end <= now) {
      // Whether they were used nobody knows: they count as used.
      const { used, units } = state.holders.region;
      const changes = mistake === "forgotten-end" ? { units: units + instance.units } : { used: used + instance.units };
      state = withGrant(withHolder(state, "region", changes), "instance", undefined);
    }
    let charges = state.charges;
    for (const name of ["region", "other"] as const) {
      const granted = state.grants[name];
      if (granted === undefined || granted.end > now) continue;
      charges = [...charges, ...Array.from({ length: granted.units }, () => granted.end)];
      state = withGrant(state, name, undefined);
    }
    return { ...state, charges: recent(charges, now), uses: recent(state.uses, now) };
  }

  /** What a holder tells to hold: a region also what its instance has. */
  function heldBy(state: RegionState, name: Name): number {
    const { units, end } = state.holders[name];
    const inHand = state.now < end ? units : 0;
    if (name !== "region" || mistake === "hidden-units") return inHand;
    return inHand + (state.grants.instance?.units ?? 0);
  }

  function ask(state: RegionState, name: Name): RegionState {
    const { seq: last, used, units, end, fetchesLeft } = state.holders[name];
    const seq = last + 1;
    const held = heldBy(state, name);
    const asked = { seq, held, at: state.now };
    const inHand = state.now < end ? units : 0;
    return {
      ...withHolder(state, name, { seq, asked, units: inHand, fetchesLeft: fetchesLeft - 1 }),
      // Of two fetches on their way only the later one matters, if the first is lost: it stays, for it may come first.
      requests: [...state.requests, { name, seq, used, held }],
      replies: state.replies.filter((reply) => reply.name !== name),
    };
  }

  function serve(state: RegionState, request: Request): RegionState {
    const { name, seq, used, held } = request;
    const known = state.grants[name];
    if (known !== undefined && seq < known.seq) return state;
    if (known !== undefined && seq === known.seq) return reply(state, name, known);
    const outstanding = known?.units ?? 0;
    const kept = Math.min(held, outstanding);
    const spent = known === undefined ? 0 : Math.min(Math.max(0, used - known.used), outstanding - kept);
    const settled = { seq, used, kept, spent, freed: outstanding - kept - spent };
    return name === "instance" ? serveInstance(state, settled) : serveRegion(state, name, settled);
  }

  interface Settled {
    readonly seq: number;
    readonly used: number;
    readonly kept: number;
    readonly spent: number;
    readonly freed: number;
  }

  function serveRegion(state: RegionState, name: "region" | "other", { seq, used, kept, spent }: Settled): RegionState {
    const { now } = state;
    const charges = [...state.charges, ...Array.from({ length: spent }, () => now)];
    const heldByOther = state.grants[name === "region" ? "other" : "region"]?.units ?? 0;
    const granted = Math.max(0, limit - recent(charges, now).length - heldByOther - kept);
    const grant: Granted = { seq, used, units: kept + granted, granted, kept, end: now + regionTerm };
    return reply(withGrant({ ...state, charges }, name, grant), name, grant);
  }

  function serveInstance(state: RegionState, { seq, used, kept, spent, freed }: Settled): RegionState {
    const { now } = state;
    const { region } = state.holders;
    const pool = (now < region.end ? region.units : 0) + freed;
    const ownEnd = mistake === "later-end" ? now + instanceTerm : Math.min(now + instanceTerm, region.end);
    // Units that the region itself no longer may use are handed to nobody.
    const granted = now < region.end ? pool : 0;
    const grant: Granted = { seq, used, units: kept + granted, granted, kept, end: Math.max(now, ownEnd) };
    const after = withHolder(state, "region", { units: pool - granted, used: region.used + spent });
    return reply(withGrant(after, "instance", grant), "instance", grant);
  }

  function reply(state: RegionState, name: Name, { seq, granted, kept, end }: Granted): RegionState {
    if (state.holders[name].asked?.seq !== seq) return state;
    return {
      ...state,
      replies: [...state.replies, { name, seq, units: granted, kept, life: Math.max(0, end - state.now) }],
    };
  }

  function receive(state: RegionState, { name, seq, units, kept, life }: Reply): RegionState {
    const holder = state.holders[name];
    const { asked } = holder;
    if (asked?.seq !== seq) return state;
    const inHand = kept < asked.held ? 0 : holder.units;
    return withHolder(state, name, { units: inHand + units, end: asked.at + life, asked: undefined });
  }

  function use(state: RegionState, name: Name): RegionState {
    const { units, used } = state.holders[name];
    return { ...withHolder(state, name, { units: units - 1, used: used + 1 }), uses: [...state.uses, state.now] };
  }

  function moves(state: RegionState): Move<RegionState>[] {
    const found: Move<RegionState>[] = [{ name: `tick ${state.now + 1}`, to: tick(state) }];
    for (const name of NAMES) {
      const { units, end, fetchesLeft } = state.holders[name];
      // A region uses nothing itself; the other one stands for all of its instances.
      if (name !== "region" && units > 0 && state.now < end) found.push({ name: `${name} uses`, to: use(state, name) });
      if (fetchesLeft > 0) found.push({ name: `${name} asks`, to: ask(state, name) });
    }
    for (const request of state.requests) {
      const rest = { ...state, requests: state.requests.filter((other) => other !== request) };
      const name = `${request.name}:${request.seq} is heard`;
      found.push({ name, to: serve(rest, request) });
      if (state.doublesLeft > 0) {
        found.push({ name: `${name}, doubled`, to: serve({ ...state, doublesLeft: state.doublesLeft - 1 }, request) });
      }
    }
    for (const answer of state.replies) {
      const rest = { ...state, replies: state.replies.filter((other) => other !== answer) };
      found.push({ name: `${answer.name} hears ${answer.seq}`, to: receive(rest, answer) });
    }
    return found;
  }

  function broken({ uses, now }: RegionState): string | undefined {
    const found = recent(uses, now).length;
    return found > limit ? `${found} of ${limit} used` : undefined;
  }

  /** The same for states that differ only in the order of messages, in what has ended, or in when they are. */
  function key({ now, charges, holders, grants, requests, replies, uses, doublesLeft }: RegionState): string {
    const ages = (times: readonly number[]): string => times.map((at) => now - at).join();
    const parts = [`${ages(charges)}|${ages(uses)}|${doublesLeft}`];
    for (const name of NAMES) {
      const { seq, used, units, end, asked, fetchesLeft } = holders[name];
      const left = Math.max(0, end - now);
      const wait = asked === undefined ? "-" : `${asked.seq},${asked.held},${Math.min(now - asked.at, 4)}`;
      parts.push(`${seq},${used},${left > 0 ? units : 0},${left},${wait},${fetchesLeft}`);
      const granted = grants[name];
      if (granted === undefined) parts.push("-");
      else
        parts.push(
          `${granted.seq},${granted.used},${granted.units},${granted.granted},${granted.kept},${granted.end - now}`,
        );
    }
    parts.push(
      requests
        .map((one) => `${one.name},${one.seq},${one.used},${one.held}`)
        .sort()
        .join("/"),
    );
    parts.push(
      replies
        .map((one) => `${one.name},${one.seq},${one.units},${one.kept},${one.life}`)
        .sort()
        .join("/"),
    );
    return parts.join(";");
  }

  const holder = (fetchesLeft: number): Holder => ({
    seq: 0,
    used: 0,
    units: 0,
    end: 0,
    asked: undefined,
    fetchesLeft,
  });
  const [region, instance, other] = constants.fetches;
  const start: RegionState = {
    now: 0,
    charges: [],
    holders: { region: holder(region), instance: holder(instance), other: holder(other) },
    grants: { region: undefined, instance: undefined, other: undefined },
    requests: [],
    replies: [],
    uses: [],
    doublesLeft: constants.doubles,
  };
  return { start, moves, broken, key };
}
