/**
 * One change of the rules, up to its commit: the newest rules, edited, validated, compared, stored as the next version.
 * In: an edit and who makes it. Out: what changed and, if something did, the version that was committed.
 * Nothing is swapped or announced here.
 */
import type { Rule } from "sluice";
import { TimeSlice } from "sluice/internal";
import { ServiceError } from "../errors.js";
import type { Applied, Change } from "./configuration.js";
import { draftOf } from "./draft.js";
import type { RuleRepository, VersionMark } from "./repository/rule-repository.js";
import { diffRules, isEmpty } from "./rule-diff.js";
import { readStoredRules } from "./rule-worker.js";

/** Changes without If-Match start over when somebody else was faster; this often. */
const TRIES = 10;

interface Committed extends VersionMark {
  readonly document: string;
  readonly rules: readonly Rule[];
}

interface Surroundings {
  /** Throws for rules that are valid, but need a global store, which this service does not have. */
  readonly accept?: ((rules: readonly Rule[]) => void) | undefined;
  readonly repository: RuleRepository;
  /** The rules of the newest version; who asks may have them at hand. */
  readonly rulesOf: (mark: VersionMark) => Promise<readonly Rule[]>;
}

interface Outcome {
  readonly applied: Applied;
  readonly committed?: Committed;
}

export async function changeRules(change: Change, surroundings: Surroundings): Promise<Outcome> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const outcome = await tryToChange(change, surroundings);
    if (outcome !== undefined) return outcome;
  }
  throw new ServiceError("too-busy", `the rules changed ${TRIES} times while this change was made`);
}

/** Undefined if somebody else committed in between. */
async function tryToChange(
  change: Change,
  { repository, rulesOf, accept }: Surroundings,
): Promise<Outcome | undefined> {
  const head = await repository.head();
  const version = head?.version ?? 0;
  const old = head === undefined ? [] : await rulesOf(head);
  if (change.ifMatch !== undefined && change.ifMatch !== version) {
    throw await mismatch({ seen: change.ifMatch, version, rules: old }, repository);
  }
  const draft = await draftOf(change.edit(old, version));
  if (draft.needsGlobalStore) accept?.(await draft.rules());
  const diff = await draft.diffFrom(old);
  // The first version is one even without rules: an instance that found no version would not know that it may serve.
  if (change.dryRun || (isEmpty(diff) && head !== undefined)) return { applied: { version, changed: false, diff } };
  const rules = await draft.rules();
  const { document, digest } = await draft.text();
  const { author, message = "", kind } = change;
  const mark = await repository.commit({ base: version, author, message, kind, document, digest, diff });
  if (mark === undefined) return undefined;
  return { applied: { version: mark.version, changed: true, diff }, committed: { ...mark, document, rules } };
}

/** Tells the editor who came second what the first has changed. */
async function mismatch(
  { seen, version, rules }: { seen: number; version: number; rules: readonly Rule[] },
  repository: RuleRepository,
): Promise<ServiceError> {
  const stored = await repository.read(seen);
  const old = stored && (await readStoredRules(stored.document));
  const diff = old && (await diffRules(old, rules, new TimeSlice()));
  const details = { currentVersion: version, ...(diff !== undefined && { diff }) };
  const message = `If-Match: expected the current version ${version}, got ${seen}`;
  return new ServiceError("version-mismatch", message, { details });
}
