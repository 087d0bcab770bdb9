/**
 * The store's side of the prefetch protocol as it ships: the functions of `algorithms/grants.ts`, on states of the model.
 * In: what holders have, and a fetch. Out: the units to charge, and what they have then. Pure: the library's records are copied.
 */
import {
  type Fetch,
  type Grants,
  grant,
  grantOf,
  noGrants,
  settle,
  takeEnded,
} from "../../../packages/sluice/src/algorithms/grants.js";
import type { RollingWindowPolicy } from "../../../packages/sluice/src/algorithms/policy.js";
import { rollingWindow } from "../../../packages/sluice/src/algorithms/rolling-window.js";

/** Instants of the library are never 0. */
const START_MS = 1_000;

export interface HeldRecord {
  readonly name: number;
  readonly seq: number;
  readonly used: number;
  readonly units: number;
  readonly granted: number;
  readonly kept: number;
  readonly end: number;
}

interface Served {
  readonly grants: readonly HeldRecord[];
  /** When units that nobody settled ended, and how many. */
  readonly ended: { readonly units: number; readonly at: number };
  readonly spent: number;
  readonly granted: { readonly units: number; readonly kept: number; readonly life: number } | undefined;
}

interface ServeOptions {
  readonly fetch: {
    readonly name: number;
    readonly seq: number;
    readonly used: number;
    readonly held: number;
    readonly isLast?: boolean;
  };
  readonly now: number;
  readonly termSteps: number;
  readonly windowSteps: number;
  readonly limit: number;
  /** What the counter would have left after the charges, beside what is held. */
  readonly left: (charged: { readonly at: number; readonly units: number }[], held: number) => number;
}

export function serveShipped(before: readonly HeldRecord[], options: ServeOptions): Served {
  const { fetch, now, termSteps, windowSteps, limit, left } = options;
  const nowMs = START_MS + now;
  const grants = libraryGrants(before);
  const { units, atMs } = takeEnded(grants, nowMs);
  const ended = { units, at: atMs - START_MS };
  const { seq, used, held } = fetch;
  const asked: Fetch = { holder: String(fetch.name), seq, used, held, want: fetch.isLast === true ? 0 : limit };
  const { kind, spent } = settle(grants, asked);
  if (kind === "late") return { grants: modelGrants(grants), ended, spent, granted: undefined };
  const charged = [
    { at: ended.at, units },
    { at: now, units: spent },
  ];
  const policy: RollingWindowPolicy = {
    stored: "rolling-window-packed",
    limit,
    windowMs: windowSteps,
    minIntervalMs: 0,
  };
  const found =
    kind === "repeated"
      ? grantOf(grants, asked.holder, nowMs)
      : grant(grants, asked, {
          policy,
          state: rollingWindow.fresh(),
          termMs: termSteps,
          left: left(charged, grants.total),
          nowMs,
        });
  const granted = { units: found.units, kept: found.kept, life: found.lifeMs };
  return { grants: modelGrants(grants), ended, spent, granted };
}

function libraryGrants(records: readonly HeldRecord[]): Grants {
  const grants = noGrants();
  for (const { name, seq, used, units, granted, kept, end } of records) {
    grants.holders.set(String(name), { seq, used, units, granted, kept, endsAtMs: START_MS + end });
    grants.total += units;
    grants.endsAtMs = grants.endsAtMs === 0 ? START_MS + end : Math.min(grants.endsAtMs, START_MS + end);
  }
  return grants;
}

function modelGrants({ holders }: Grants): HeldRecord[] {
  return [...holders].map(([name, { seq, used, units, granted, kept, endsAtMs }]) => {
    return { name: Number(name), seq, used, units, granted, kept, end: endsAtMs - START_MS };
  });
}
