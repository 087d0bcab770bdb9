/** Headers that Envoy adds to its own response, and the body of a refusal. Policies carry the names of their limits in the files. */
import type { Decision } from "sluice";
import { answerOf, refusalText } from "sluice/http";
import { policyList } from "sluice/internal";
import { unitSeconds } from "./descriptor-config.js";
import { displayName, ruleIdOf } from "./envoy-rules.js";
import { codes, type DescriptorStatus } from "./rate-limit-messages.js";
import type { Asked } from "./should-rate-limit.js";

/** `standard`: RateLimit, RateLimit-Policy, Retry-After; three names: envoyproxy/ratelimit's headers for limit, remaining and reset. */
export type FieldsOption = "standard" | "off" | readonly [limit: string, remaining: string, reset: string];

interface Addition {
  readonly headers: { key: string; value: string }[];
  /** JSON; only for a refusal. */
  readonly body: string | undefined;
}

export function additionTo(made: {
  decision: Decision;
  asked: readonly Asked[];
  statuses: readonly DescriptorStatus[];
  /** Refused although every enforced rule passed, because all quotas are used up. */
  quotaUsedUp: boolean;
  option: FieldsOption;
}): Addition {
  const { decision, asked, statuses, option } = made;
  const answer =
    decision.allowed && made.quotaUsedUp
      ? quotaAnswer(asked)
      : decision.allowed
        ? { fields: Object.entries(answerOf(decision).headers), body: undefined }
        : refusalText(decision);
  const names = namesOf(asked);
  const body = answer.body === undefined ? undefined : renamed(answer.body, names);
  if (option !== "standard") return { headers: option === "off" ? [] : threeFields(statuses, option), body };
  return { headers: answer.fields.map(([key, value]) => ({ key, value: renamed(value, names) })), body };
}

interface Name {
  readonly id: string;
  /** Its name in the file. */
  readonly name: string;
}

const NO_NAMES: readonly Name[] = [];

function namesOf(asked: readonly Asked[]): readonly Name[] {
  let names = NO_NAMES;
  for (const { limit } of asked) {
    if (limit?.kind !== "placed" || limit.placed.limit.name === undefined) continue;
    names = [...names, { id: ruleIdOf(limit.placed), name: plainName(limit.placed.limit.name) }];
  }
  return names;
}

/** Replaces quoted rule ids by their names from the files. Ids contain no quotes, so this is unambiguous. */
function renamed(text: string, names: readonly Name[]): string {
  let result = text;
  // Covers JSON and Structured Fields strings; within a JSON body quotes are escaped.
  for (const { id, name } of names)
    result = result.replaceAll(`\\"${id}\\"`, `\\"${name}\\"`).replaceAll(`"${id}"`, `"${name}"`);
  return result;
}

/** Structured Fields strings are printable ASCII; quotes and backslashes would have to be escaped twice within a body. */
function plainName(name: string): string {
  return name.replaceAll(/[^\x20-\x7e]|["\\]/g, "_");
}

/** The wait is that of the quota that resets first, after which the request passes. */
function quotaAnswer(asked: readonly Asked[]): { fields: [string, string][]; body: string } {
  const used = asked.flatMap(({ limit, check }) =>
    limit !== undefined && check?.allowed === false ? [{ limit, check }] : [],
  );
  const named = used.map(({ limit, check }) => {
    const name = plainName(limit.kind === "placed" ? displayName(limit.placed) : check.rule);
    const unit = limit.kind === "placed" ? limit.placed.limit.unit : limit.override.unit;
    return { name, check, window: unit === "" ? "" : `;w=${unitSeconds[unit]}` };
  });
  const first = named.reduce((a, b) => (b.check.retryAfterMs < a.check.retryAfterMs ? b : a));
  const seconds = Math.max(1, Math.ceil(first.check.retryAfterMs / 1000));
  const policyOf = ({ name, check, window }: (typeof named)[number]): string => `"${name}";q=${check.limit}${window}`;
  return {
    fields: [
      [
        "RateLimit-Policy",
        policyList(named.map(policyOf), () => [first, ...named.filter((one) => one !== first)].map(policyOf)),
      ],
      ["RateLimit", `"${first.name}";r=0;t=${seconds}`],
      ["Retry-After", String(seconds)],
      ["Content-Type", "application/problem+json"],
    ],
    body: JSON.stringify({
      type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
      title: "Request cannot be satisfied as assigned quota has been exceeded",
      status: 429,
      detail: `All quotas are used up. Try again in ${seconds} s.`,
      "violated-policies": named.map(({ name }) => name),
      retryAfterMs: first.check.retryAfterMs,
    }),
  };
}

/** Like the reference: the status that is over the limit, else the one with the least remaining. */
function threeFields(
  statuses: readonly DescriptorStatus[],
  [limit, remaining, reset]: readonly [string, string, string],
): { key: string; value: string }[] {
  const limited = statuses.filter(({ currentLimit }) => currentLimit !== undefined);
  if (limited.length === 0) return [];
  const left = (status: DescriptorStatus): number => (status.code === codes.overLimit ? -1 : status.limitRemaining);
  const least = limited.reduce((a, b) => (left(b) < left(a) ? b : a));
  return [
    { key: limit, value: String(least.currentLimit!.requestsPerUnit) },
    { key: remaining, value: String(least.limitRemaining) },
    { key: reset, value: String(least.durationUntilReset?.seconds ?? 0) },
  ];
}
