/**
 * Mistakes of a load-shedding rule that no single field shows. In: the rule as written; values that the field table refuses are skipped,
 * because they have been reported.
 */
import { describeValue } from "./describe-value.js";
import { isObject, type Kind } from "./field-kinds.js";
import { rule as ruleFields } from "./fields.js";
import { DEFAULT_CLASSES } from "./shedding-plan.js";

const loadSignals: readonly unknown[] = ["inflight", "event-loop", "reported"];
const limitShape = ruleFields.fields.get("limit")!.shape as Kind;

type Report = (path: string, message: string) => void;

export function checkShedding(rule: Record<string, unknown>, path: string, report: Report): void {
  const { signal, limit, class: from, classes } = rule;
  if (signal === undefined) {
    report(`${path}.signal`, "expected inflight, event-loop or reported, or a list of them, got nothing");
  }
  const signals: readonly unknown[] = Array.isArray(signal) ? signal : [signal];
  signals.forEach((name, i) => {
    if (signals.indexOf(name) < i)
      report(`${path}.signal[${i}]`, `expected each signal once, got ${describeValue(name)} again`);
  });
  const isReadable = signals.length > 0 && signals.every((name) => loadSignals.includes(name));
  if (signals.includes("inflight")) {
    if (limit === undefined || (limit === 0 && limitShape.accepts(0))) {
      const got = describeValue(limit);
      report(`${path}.limit`, `expected places for requests in flight (a whole number from 1, or auto), got ${got}`);
    }
  } else if (limit !== undefined && isReadable) {
    report(`${path}.limit`, "has a meaning only with the signal inflight: leave it out");
  }
  if (classes !== undefined && from === undefined) {
    report(`${path}.class`, "expected {attribute, default} beside classes, got nothing: which class a request has");
  }
  const known = isObject(classes) ? Object.keys(classes) : Object.keys(DEFAULT_CLASSES);
  if (known.length > 0 && isObject(from) && typeof from.default === "string" && !known.includes(from.default)) {
    report(
      `${path}.class.default`,
      `expected one of the classes ${known.join(", ")}, got ${describeValue(from.default)}`,
    );
  }
}
