/**
 * `validateRules` in slices: the same rules or the same mistakes, without holding up checks while a large document is read.
 * In: anything. Out: rules that can be compiled, or every mistake at once.
 */
import { type Mistake, type Rule, SluiceError, validateRules } from "sluice";
import type { Pace } from "./pace.js";

/** Rules and overrides that are validated in one go: less than a millisecond. */
const PORTION = 200;

type Outcome = { rules: Rule[] } | { mistakes: Mistake[] };

export async function validateDocument(document: unknown, pace: Pace): Promise<Outcome> {
  const written = rulesIn(document);
  // Small or misshapen as a whole: nothing to divide.
  if (written === undefined) return validateRules(document);
  const rules: Rule[] = [];
  const mistakes: Mistake[] = [];
  for (const { first, count } of portions(written)) {
    if (pace.isDue()) await pace.rest();
    const part = written.slice(first, first + count);
    const outcome = count === 1 ? await validateRule(part[0], pace) : validateRules(part);
    if ("rules" in outcome) rules.push(...outcome.rules);
    else mistakes.push(...outcome.mistakes.map((mistake) => shifted(mistake, first)));
  }
  // An id that two portions share is only seen in the whole.
  const repeated = new Set(written.map(idOf)).size < written.length;
  if (repeated) return validateRules(document);
  return mistakes.length === 0 ? { rules } : { mistakes };
}

/** The rules, or a SluiceError `invalid-rules` whose message lists every mistake. */
export async function parseDocument(document: unknown, pace: Pace): Promise<Rule[]> {
  const outcome = await validateDocument(document, pace);
  if ("rules" in outcome) return outcome.rules;
  throw invalidRules(outcome.mistakes);
}

export function invalidRules(mistakes: readonly Mistake[]): SluiceError {
  return new SluiceError("invalid-rules", mistakes.map(({ path, message }) => `${path}: ${message}`).join("\n"), {
    mistakes,
  });
}

/** The list of rules, if it is long and nothing about the document around it needs to be said. */
function rulesIn(document: unknown): readonly unknown[] | undefined {
  if (typeof document !== "object" || document === null) return undefined;
  const alone = Array.isArray(document);
  if (!alone && (Object.keys(document).length !== 1 || !("rules" in document))) return undefined;
  const rules: unknown = alone ? document : (document as { rules: unknown }).rules;
  if (!Array.isArray(rules)) return undefined;
  const size = rules.reduce<number>((sum, rule) => sum + 1 + overridesIn(rule).length, 0);
  return size > PORTION ? rules : undefined;
}

function portions(rules: readonly unknown[]): { first: number; count: number }[] {
  const found: { first: number; count: number }[] = [];
  let first = 0;
  let size = 0;
  for (let i = 0; i < rules.length; i++) {
    const weight = 1 + overridesIn(rules[i]).length;
    if (i > first && size + weight > PORTION) {
      found.push({ first, count: i - first });
      first = i;
      size = 0;
    }
    size += weight;
  }
  found.push({ first, count: rules.length - first });
  return found;
}

/** One rule, its overrides in portions: each of them is judged beside the rule alone, never beside its neighbours. */
async function validateRule(rule: unknown, pace: Pace): Promise<Outcome> {
  const overrides = overridesIn(rule);
  if (overrides.length <= PORTION) return validateRules([rule]);
  const kept: unknown[] = [];
  const mistakes = new Map<string, Mistake>();
  let head: Rule | undefined;
  for (let first = 0; first < overrides.length; first += PORTION) {
    if (pace.isDue()) await pace.rest();
    const part = validateRules([{ ...(rule as object), overrides: overrides.slice(first, first + PORTION) }]);
    if ("rules" in part) {
      head ??= part.rules[0]!;
      for (const override of part.rules[0]!.overrides!) kept.push(override);
      continue;
    }
    for (const { path, message } of part.mistakes) {
      const at = path.replace(/^(rules\[0\]\.overrides\[)(\d+)/, (_, before, i) => `${before}${Number(i) + first}`);
      // What is wrong with the rule itself is found with every portion, and told once.
      mistakes.set(`${at} ${message}`, { path: at, message });
    }
  }
  if (mistakes.size > 0) return { mistakes: [...mistakes.values()] };
  return { rules: [{ ...head, overrides: kept } as Rule] };
}

function overridesIn(rule: unknown): readonly unknown[] {
  const overrides = typeof rule === "object" && rule !== null ? (rule as { overrides?: unknown }).overrides : undefined;
  // A list beyond the bound of 100 000 is refused as a whole; whoever refuses it must see it whole.
  return Array.isArray(overrides) && overrides.length <= 100_000 ? overrides : [];
}

function shifted({ path, message }: Mistake, by: number): Mistake {
  return { path: path.replace(/^rules\[(\d+)\]/, (_, i) => `rules[${Number(i) + by}]`), message };
}

function idOf(rule: unknown, index: number): unknown {
  const id = typeof rule === "object" && rule !== null ? (rule as { id?: unknown }).id : undefined;
  return typeof id === "string" ? id : index;
}
