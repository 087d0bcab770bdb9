/** Builds the response of `ShouldRateLimit` from a decision: a status per descriptor, and headers for Envoy to add to its own response. */
import type { CheckResult, Decision, Limiter, Rule } from "sluice";
import { NEVER_MS } from "sluice";
import { type Unit, unitSeconds } from "./descriptor-config.js";
import { metadataOf } from "./dynamic-metadata.js";
import { displayName } from "./envoy-rules.js";
import { LEASE_ENTRY } from "./give-back.js";
import {
  codes,
  type DescriptorStatus,
  type RateLimitRequest,
  type RateLimitResponse,
  unitNames,
} from "./rate-limit-messages.js";
import { additionTo, type FieldsOption } from "./response-fields.js";
import type { Asked } from "./should-rate-limit.js";
import { structOf } from "./struct-message.js";

const MOST_UINT32 = 0xffff_ffff;

interface OwnCheck {
  readonly check: CheckResult;
  readonly rule: Rule | undefined;
}

/** Sluice's own rules, as needed for descriptor statuses. */
export class OwnRules {
  readonly #limiter: Limiter;

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
  }

  /**
   * Assigns each check to the first descriptor that has all of its rule's key attributes, else to the first one, as statuses have no other
   * place for it.
   */
  assign(checks: readonly CheckResult[], asked: readonly Asked[], domain: string): OwnCheck[][] {
    const assigned: OwnCheck[][] = asked.map(() => []);
    for (const check of checks) {
      if (check.mode === "candidate") continue;
      const rule = this.#limiter.findRule(check.rule);
      const needed = (rule?.key ?? []).filter((name) => name !== "domain" || domain === "");
      const at = asked.findIndex(({ descriptor }) =>
        needed.every((name) => descriptor.entries.some(({ key }) => key === name)),
      );
      assigned[Math.max(0, at)]!.push({ check, rule });
    }
    return assigned;
  }
}

export interface AnswerOptions {
  readonly fields: FieldsOption;
  readonly body: boolean;
  readonly dynamicMetadata: boolean;
  /** Nothing is refused; statuses report what would have been. */
  readonly shadowMode: boolean;
  readonly allQuotas: boolean;
  /** Refused hits are counted, unless a configured limit overrides this. */
  readonly countsRefused: boolean;
  /** Store failure is reported as an error, so that the caller's failure mode decides. */
  readonly failsWithStore: boolean;
}

export function respond(made: {
  request: RateLimitRequest;
  asked: readonly Asked[];
  /** Per descriptor. */
  own: readonly (readonly OwnCheck[])[];
  decision: Decision;
  quotaUsedUp: boolean;
  answers: AnswerOptions;
}): RateLimitResponse {
  const { request, asked, own, decision, quotaUsedUp, answers } = made;
  const statuses = asked.map((one, i) => tightest([...limitStatus(one), ...own[i]!.map(ownStatus)]));
  const refused = !answers.shadowMode && (!decision.allowed || quotaUsedUp);
  const { headers, body } = additionTo({ decision, asked, statuses, quotaUsedUp, option: answers.fields });
  const response: RateLimitResponse = {
    overallCode: refused ? codes.overLimit : codes.ok,
    statuses,
    responseHeadersToAdd: refused ? headers : headers.filter(({ key }) => !refusalFields.has(key)),
  };
  if (refused && answers.body && body !== undefined) response.rawBody = Buffer.from(body);
  const { lease } = decision;
  const fields = {
    ...(answers.dynamicMetadata && metadataOf(request, asked)),
    ...(lease !== undefined && !quotaUsedUp && { [LEASE_ENTRY]: lease.id }),
  };
  if (Object.keys(fields).length > 0) response.dynamicMetadata = structOf(fields);
  return response;
}

/** Reports every descriptor as over its limit, without details. */
export function refuseAll({ descriptors }: RateLimitRequest): RateLimitResponse {
  return {
    overallCode: codes.overLimit,
    statuses: descriptors.map(() => ({ code: codes.overLimit, limitRemaining: 0 })),
    responseHeadersToAdd: [],
  };
}

/** Fields that only refusals have; dropped in shadow mode, which lets the request pass. */
const refusalFields = new Set(["Retry-After", "Content-Type"]);

export function passedStatus(): DescriptorStatus {
  return { code: codes.ok, limitRemaining: 0 };
}

/**
 * Of several limits on a descriptor, picks the most informative one: over the limit first, then the longer wait, then the least remaining.
 */
function tightest(statuses: readonly DescriptorStatus[]): DescriptorStatus {
  return statuses.reduce((a, b) => (saysMore(b, a) ? b : a), statuses[0] ?? passedStatus());
}

function saysMore(a: DescriptorStatus, b: DescriptorStatus): boolean {
  if (a.code !== b.code) return a.code === codes.overLimit;
  if (a.code === codes.overLimit) return (a.durationUntilReset?.seconds ?? 0) > (b.durationUntilReset?.seconds ?? 0);
  return a.limitRemaining < b.limitRemaining;
}

function limitStatus({ limit, check }: Asked): DescriptorStatus[] {
  if (limit === undefined) return [];
  if (limit.kind === "override") {
    const { requestsPerUnit, unit } = limit.override;
    return check ? [statusOf(check, { requestsPerUnit, unit, name: "", isShadow: false })] : [];
  }
  const { placed } = limit;
  if (placed.limit.unlimited) return [{ code: codes.ok, limitRemaining: MOST_UINT32 }];
  const { requestsPerUnit, unit } = placed.limit;
  const told = {
    requestsPerUnit,
    unit: unit === "" ? undefined : unit,
    name: displayName(placed),
    isShadow: placed.shadow,
  };
  return check ? [statusOf(check, told)] : [];
}

function ownStatus({ check, rule }: OwnCheck): DescriptorStatus {
  const window = rule !== undefined && "window" in rule ? rule.window : undefined;
  const told = {
    requestsPerUnit: check.limit,
    unit: unitOfWindow(window),
    name: check.rule,
    isShadow: check.mode === "shadow",
  };
  return statusOf(check, told);
}

function statusOf(
  check: CheckResult,
  told: { requestsPerUnit: number; unit: Unit | undefined; name: string; isShadow: boolean },
): DescriptorStatus {
  const { requestsPerUnit, unit, name } = told;
  const over = !check.allowed && !told.isShadow;
  return {
    code: over ? codes.overLimit : codes.ok,
    currentLimit: { requestsPerUnit: Math.min(requestsPerUnit, MOST_UINT32), unit: unitNumber(unit), name },
    limitRemaining: requestsPerUnit === 0 ? 0 : Math.min(Math.max(0, check.remaining), MOST_UINT32),
    durationUntilReset: { seconds: secondsUntil(check, unit), nanos: 0 },
  };
}

/** Envoy reads whole seconds and sends them as Retry-After: round up, or clients come back early and are refused twice. */
function secondsUntil({ allowed, retryAfterMs, resetAfterMs }: CheckResult, unit: Unit | undefined): number {
  const waitMs = allowed || retryAfterMs === NEVER_MS ? resetAfterMs : retryAfterMs;
  if (waitMs > 0 || unit === undefined) return Math.ceil(waitMs / 1000);
  // Nothing is counted yet, but a fixed window still ends with its unit.
  const nowSeconds = Date.now() / 1000;
  return Math.ceil(unitSeconds[unit] - (nowSeconds % unitSeconds[unit]));
}

function unitNumber(unit: Unit | undefined): number {
  return unit === undefined ? 0 : unitNames.indexOf(unit.toUpperCase() as (typeof unitNames)[number]);
}

const unitsByWindow: Readonly<Record<string, Unit>> = {
  "1s": "second",
  "60s": "minute",
  "1m": "minute",
  "3600s": "hour",
  "60m": "hour",
  "1h": "hour",
  "24h": "day",
  "1d": "day",
  day: "day",
  "7d": "week",
  week: "week",
  "30d": "month",
  month: "month",
  "365d": "year",
};

/** The protocol has no other windows; they are sent as UNKNOWN, which Envoy ignores. */
function unitOfWindow(window: string | undefined): Unit | undefined {
  return window !== undefined && Object.hasOwn(unitsByWindow, window) ? unitsByWindow[window] : undefined;
}
