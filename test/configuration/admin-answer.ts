/**
 * What tests read of the admin API's answers, in one type: each route answers with some of these fields, and its schema, in
 * packages/server/src/administration, lists which. A field that is not there fails the test that reads it.
 */
import type { Rule } from "sluice";
import type { RuleDiff } from "../../packages/server/src/configuration/rule-diff.js";

export interface AdminAnswer {
  // Rules and their versions.
  readonly version: number;
  readonly rules: readonly Rule[];
  readonly versions: readonly { readonly version: number; readonly author: string }[];
  /** Where the next page begins; absent on the last. */
  readonly next?: number;
  readonly diff: RuleDiff;
  readonly text: string;
  // Tokens, sessions, the audit.
  readonly token: string;
  readonly tokens: readonly { readonly name: string; readonly expiresAt: string; readonly lastUsedAt?: string }[];
  readonly sessions: readonly { readonly id: string; readonly name: string }[];
  readonly entries: readonly { readonly actor: string; readonly action: string }[];
  // A silence, or all of them.
  readonly id: string;
  readonly match: object;
  readonly createdAtMs: number;
  readonly endsAtMs: number;
  readonly silences: readonly object[];
  // A problem.
  readonly code: string;
  readonly detail: string;
  readonly remedy: string;
  readonly mistakes: readonly { readonly path: string; readonly message: string }[];
}
