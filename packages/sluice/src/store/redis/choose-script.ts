/**
 * Chooses the script for each request, and which requests share a call. Pure.
 *
 *   fetch      at least one rule has prefetch: as decide, and units held elsewhere count
 *   turns      at least one rule has maxWait: as decide, and what does not fit now may be charged later
 *   decide     several checks, a look, a charge, a block, a request id or units to hold: the script that can decide anything
 *   single-X   one check to be charged: the lean script of its algorithm; identical requests (same counter, policy and cost) form one group
 *   plain-X    a batch for single-X in which every request costs 1 and has its own counter, under one policy: straight-line code
 */
import type { Policy } from "../../algorithms/policy.js";
import { type Stored, storedAs } from "../../keys.js";
import type { StoreRequest } from "../store.js";
import { scriptSources } from "./lua/scripts.generated.js";

export type ScriptName = keyof typeof scriptSources;

/** The scripts chosen here. On a cluster they also run over several slots of a node. */
export const decidingScripts = (Object.keys(scriptSources) as ScriptName[]).filter((name) =>
  /^(fetch|turns|decide|single-.*|plain-.*)$/.test(name),
);

/** Bounds how long one script call can block Redis. */
const MAX_REQUESTS_PER_CALL = 128;
const MAX_CHECKS_PER_CALL = 1_024;

/** Stored forms that keep an id per entry: `named` in their Lua bodies. */
const namedForms = new Set<Stored>(["rolling-window", "concurrency"]);

interface Queued {
  readonly request: StoreRequest;
  /** Set if the request may share a call only with requests for the same key. */
  readonly endsAtMonotonicMs?: number | undefined;
}

interface Call<T> {
  readonly script: ScriptName;
  readonly batch: T[];
}

/**
 * The calls for the queued requests, in order. Requests share a call if they need the same script and one script can reach all their keys.
 * Without `reachOf`, one script reaches all keys.
 */
export function arrange<T extends Queued>(waiting: readonly T[], reachOf?: (key: string) => string): Call<T>[] {
  const calls: Call<T>[] = [];
  const open = new Map<ScriptName, Map<string, { batch: T[]; checks: number }>>();
  for (const queued of waiting) {
    const script = scriptFor(queued.request);
    const { key } = queued.request.checks[0]!;
    const isApart = queued.endsAtMonotonicMs !== undefined;
    const reach = isApart ? key : reachOf === undefined ? "" : reachOf(key);
    let ofScript = open.get(script);
    if (ofScript === undefined) {
      ofScript = new Map();
      open.set(script, ofScript);
    }
    let call = ofScript.get(reach);
    if (call === undefined || call.batch.length === MAX_REQUESTS_PER_CALL || call.checks >= MAX_CHECKS_PER_CALL) {
      call = { batch: [], checks: 0 };
      ofScript.set(reach, call);
      calls.push({ script, batch: call.batch });
    }
    call.batch.push(queued);
    call.checks += queued.request.checks.length + entriesOf(queued.request);
  }
  return calls;
}

/** Whether the counters of a batch lie in more than one cluster slot, judging by their hash tags. */
export function crossesSlots(batch: readonly Queued[]): boolean {
  const { key } = batch[0]!.request.checks[0]!;
  const tagged = key.slice(0, key.indexOf("}") + 1);
  for (let i = 0; i < batch.length; i++) if (!allBegin(batch[i]!.request, tagged)) return true;
  return false;
}

/** Whether the counters of one request lie in more than one slot. */
export function spansSlots(request: StoreRequest): boolean {
  return request.checks.length > 1 && crossesSlots([{ request }]);
}

function allBegin({ checks }: StoreRequest, tagged: string): boolean {
  for (let i = 0; i < checks.length; i++) if (!checks[i]!.key.startsWith(tagged)) return false;
  return true;
}

/** The extra writes of a request for several units, where each unit is an entry of a sorted set. */
function entriesOf({ checks }: StoreRequest): number {
  let entries = 0;
  for (const { cost, plan } of checks) if (cost > 1 && plan.policy.stored === "rolling-window") entries += cost - 1;
  return entries;
}

/** `decide`, `turns` or `fetch`, or the lean script for a single check that is charged and has no id. */
export function scriptFor({ checks, charge, id, holdMs }: StoreRequest): ScriptName {
  let hasTurns = false;
  for (let i = 0; i < checks.length; i++) {
    const { prefetchMs, maxWaitMs } = checks[i]!.plan;
    if (prefetchMs > 0) return "fetch";
    if (maxWaitMs > 0) hasTurns = true;
  }
  if (hasTurns) return "turns";
  const [only] = checks;
  const isSingle = checks.length === 1 && charge && id === undefined && holdMs === undefined;
  if (!isSingle || only === undefined || only.cost === 0 || only.charge === true || only.block !== undefined)
    return "decide";
  return `single-${storedAs[only.plan.policy.stored]}`;
}

/** The plain script for single checks of cost 1, each on its own counter, under this policy; undefined if its stored form has none. */
export function plainScriptFor({ stored }: Policy): ScriptName | undefined {
  if (stored === "token-bucket") return "plain-b";
  if (stored === "gcra") return "plain-g";
  if (stored === "fixed-window") return "plain-f";
  if (stored === "rolling-window-packed") return "plain-p";
  return undefined;
}

export function keepsEntryIds(stored: Stored): boolean {
  return namedForms.has(stored);
}
