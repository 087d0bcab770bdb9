/** Which fields an alert policy may have, and what each must be. All mistakes at once, each with its path. Pure. */
import type { Mistake } from "sluice";
import { parseDuration } from "sluice/internal";
import { ownField } from "../own-fields.js";

/** Where a value stands, such as `routes[2].repeat`. */
type Place = string;

type Check = (value: unknown, place: Place, note: (mistake: Mistake) => void) => void;

const MOST = { conditions: 200, detectors: 200, receivers: 50, routes: 100, recipients: 50 } as const;
const ID = /^[a-z0-9][a-z0-9\-_.]{0,63}$/;
const ADDRESS = /^[^\s@,;<>"\p{Cc}]{1,64}@[^\s@,;<>"\p{Cc}]{1,190}$/u;
const MINUTE_MS = 60_000;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** `isSecret`: what came is not repeated. */
function expected(what: string, isRight: (value: unknown) => boolean, isSecret = false): Check {
  return (value, path, note) => {
    if (!isRight(value)) note({ path, message: `expected ${what}${isSecret ? "" : `, got ${shown(value)}`}` });
  };
}

const oneOf = (...words: readonly string[]): Check =>
  expected(words.map((word) => `"${word}"`).join(", "), (value) => words.includes(value as string));
const id = expected("a name such as ops-team", (value) => typeof value === "string" && ID.test(value));
const text = (most: number): Check =>
  expected(
    `a text of 1 to ${most} characters`,
    (value) => typeof value === "string" && value !== "" && value.length <= most,
  );
const numberBetween = (least: number, most: number): Check =>
  expected(
    `a number from ${least} to ${most}`,
    (value) => typeof value === "number" && value >= least && value <= most,
  );
const wholeMinutes = expected('whole minutes from "1m" to "60m"', (value) => {
  const ms = typeof value === "string" ? parseDuration(value) : undefined;
  return ms !== undefined && ms % MINUTE_MS === 0 && ms >= MINUTE_MS && ms <= 60 * MINUTE_MS;
});
const repeat = expected('a duration from "5m" to "7d"', (value) => {
  const ms = typeof value === "string" ? parseDuration(value) : undefined;
  return ms !== undefined && ms >= 5 * MINUTE_MS && ms <= 7 * 24 * 60 * MINUTE_MS;
});
const secretUrl = expected("a URL that begins with https:// or http://", isUrl, true);
const plainUrl = expected("a URL that begins with https:// or http://", isUrl);
const secretText = expected(
  "a text of 8 to 512 characters without spaces",
  (value) => {
    return typeof value === "string" && /^[\x21-\x7e]{8,512}$/.test(value);
  },
  true,
);
const severity = oneOf("warning", "critical");
const ignored: Check = () => undefined;

function isUrl(value: unknown): boolean {
  return typeof value === "string" && value.length <= 2_048 && /^https?:\/\//.test(value) && URL.canParse(value);
}

function listOf(item: Check, most: number): Check {
  return (value, path, note) => {
    if (!Array.isArray(value)) note({ path, message: `expected a list, got ${shown(value)}` });
    else if (value.length > most) note({ path, message: `expected at most ${most}, got ${value.length}` });
    else for (const [i, one] of value.entries()) item(one, `${path}[${i}]`, note);
  };
}

interface Fields {
  readonly required?: Readonly<Record<string, Check>>;
  readonly optional?: Readonly<Record<string, Check>>;
}

function object({ required = {}, optional = {} }: Fields): Check {
  return (value, path, note) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      note({ path: path || "document", message: `expected an object, got ${shown(value)}` });
      return;
    }
    const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
    for (const [name, field] of Object.entries(value)) {
      const check = ownField(required, name) ?? ownField(optional, name);
      const known = [...Object.keys(required), ...Object.keys(optional)];
      if (check === undefined) note({ path: at(name), message: `unknown field; known are ${known.join(", ")}` });
      else check(field, at(name), note);
    }
    for (const name of Object.keys(required)) {
      if (!Object.hasOwn(value, name)) required[name]!(undefined, at(name), note);
    }
  };
}

const scope = { rule: text(64), tag: text(64) };

const conditionFields = object({
  required: { id, metric: oneOf("checks", "refused", "refused-share") },
  optional: {
    ...scope,
    above: numberBetween(0, 1e12),
    below: numberBetween(0, 1e12),
    for: wholeMinutes,
    severity,
  },
});

/** What `above` and `below` mean differs by kind. */
const tunable: Readonly<Record<string, Fields["optional"]>> = {
  "unusual-rate": { ...scope, above: numberBetween(1.1, 1_000), below: numberBetween(0, 0.9) },
  "refusal-share": { ...scope, above: numberBetween(0.01, 1) },
  "new-heavy-key": { ...scope, above: numberBetween(0.01, 1) },
  "store-degraded": {},
  "store-memory": {},
  "propagation-stuck": {},
};

const secretsOf: Readonly<Record<string, Fields>> = {
  webhook: { optional: { url: secretUrl, secret: secretText } },
  slack: { optional: { url: secretUrl } },
  pagerduty: { optional: { key: secretText, url: plainUrl } },
  opsgenie: { optional: { key: secretText, url: plainUrl } },
  email: {
    required: {
      to: listOf(
        expected("a mail address", (value) => typeof value === "string" && ADDRESS.test(value)),
        MOST.recipients,
      ),
    },
  },
};

/** Chooses the fields by a field of the value itself. */
function byField(name: string, choices: Readonly<Record<string, Check>>): Check {
  return (value, path, note) => {
    const chosen = (value as Record<string, unknown> | null)?.[name];
    const check = typeof chosen === "string" && Object.hasOwn(choices, chosen) ? choices[chosen] : undefined;
    if (check !== undefined) check(value, path, note);
    else oneOf(...Object.keys(choices))(chosen, `${path}.${name}`, note);
  };
}

const detector = byField(
  "kind",
  Object.fromEntries(
    Object.entries(tunable).map(([kind, optional = {}]) => [
      kind,
      object({ required: { kind: ignored }, optional: { ...optional, mode: oneOf("on", "off"), severity } }),
    ]),
  ),
);
const receiver = byField(
  "type",
  Object.fromEntries(
    Object.entries(secretsOf).map(([type, { required = {}, optional = {} }]) => [
      type,
      // What an answer of the service adds may be sent back as it came.
      object({
        required: { id, type: ignored, ...required },
        optional: { ...optional, secrets: ignored, address: ignored },
      }),
    ]),
  ),
);
const route = object({
  required: { receivers: listOf(id, MOST.receivers) },
  optional: { match: object({ optional: { ...scope, kind: text(64), severity } }), repeat },
});

const policy = object({
  optional: {
    version: ignored,
    conditions: listOf(conditionOf, MOST.conditions),
    detectors: listOf(detector, MOST.detectors),
    receivers: listOf(receiver, MOST.receivers),
    routes: listOf(route, MOST.routes),
  },
});

function conditionOf(value: unknown, path: Place, note: (mistake: Mistake) => void): void {
  conditionFields(value, path, note);
  const { above, below, rule, tag, metric } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if ((above === undefined) === (below === undefined)) note({ path, message: "expected either above or below" });
  if (rule !== undefined && tag !== undefined) note({ path, message: "expected rule or tag, not both" });
  if (metric === "refused-share" && [above, below].some((bound) => typeof bound === "number" && bound > 1))
    note({ path, message: "expected a share from 0 to 1, such as 0.2" });
}

export function mistakesOf(document: unknown): readonly Mistake[] {
  const mistakes: Mistake[] = [];
  const note = (mistake: Mistake): void => void (mistakes.length < 100 && mistakes.push(mistake));
  policy(document, "", note);
  if (mistakes.length > 0) return mistakes;
  const {
    conditions = [],
    receivers = [],
    routes = [],
  } = document as {
    conditions?: { id: string }[];
    receivers?: { id: string }[];
    routes?: { receivers: string[] }[];
  };
  twice(conditions, "conditions", note);
  twice(receivers, "receivers", note);
  const known = new Set(receivers.map((one) => one.id));
  for (const [i, { receivers: named }] of routes.entries()) {
    for (const [j, name] of named.entries()) {
      if (!known.has(name))
        note({ path: `routes[${i}].receivers[${j}]`, message: `there is no receiver ${shown(name)}` });
    }
  }
  return mistakes;
}

function twice(named: readonly { readonly id: string }[], list: string, note: (mistake: Mistake) => void): void {
  const seen = new Set<string>();
  for (const [i, one] of named.entries()) {
    if (seen.has(one.id)) note({ path: `${list}[${i}].id`, message: `${shown(one.id)} is there already` });
    seen.add(one.id);
  }
}
