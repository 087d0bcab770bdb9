/** The admin API's responses, as far as the dashboard reads them. Types only; imported from the service where it has them. */
import type { Rule } from "sluice";
import type { Role } from "sluice-server/configuration/repository/rule-repository.js";
import type { RuleDiff } from "sluice-server/configuration/rule-diff.js";

export type { Degraded, ExplainedEstimate, ExplainedRule, Explanation, Rule } from "sluice";
export type { SuggestionsView, TryView } from "sluice-server/analysis/try-on-traffic.js";
export type { Role } from "sluice-server/configuration/repository/rule-repository.js";
export type { FieldChange, RuleChange, RuleDiff } from "sluice-server/configuration/rule-diff.js";
export type * from "sluice-server/monitoring/views/alerts.js";
export type * from "sluice-server/monitoring/views/keys.js";
export type * from "sluice-server/monitoring/views/load.js";
export type * from "sluice-server/monitoring/views/regions.js";
export type * from "sluice-server/monitoring/views/session.js";
export type * from "sluice-server/monitoring/views/spend.js";
export type * from "sluice-server/monitoring/views/stats.js";
export type * from "sluice-server/monitoring/views/store.js";
export type * from "sluice-server/monitoring/views/time.js";

export interface RulesView {
  readonly version: number;
  readonly rules: readonly Rule[];
}

export interface AppliedView {
  readonly version: number;
  readonly changed: boolean;
  readonly diff: RuleDiff;
  readonly text: string;
  /** For a single rule: valid but probably unintended. */
  readonly warnings?: readonly Mistake[];
}

export interface VersionView {
  readonly version: number;
  readonly author: string;
  readonly message: string;
  readonly kind: string;
  readonly createdAt: string;
  readonly summary: string;
}

export interface VersionDetailView extends VersionView {
  readonly diff: RuleDiff;
  readonly text: string;
  readonly rules: readonly Rule[];
}

export interface VersionsView {
  readonly versions: readonly VersionView[];
  readonly next?: number;
}

export interface AuditView {
  readonly entries: readonly {
    readonly id: number;
    readonly at: string;
    readonly actor: string;
    readonly action: string;
    readonly target: string;
    readonly details: Readonly<Record<string, unknown>>;
  }[];
  readonly next?: number;
}

export type AuditFilter = Readonly<Partial<Record<"actor" | "rule" | "action" | "from" | "to", string>>>;

export type { Silence as SilenceView } from "sluice-server/configuration/repository/alert-repository.js";

export interface AlertPolicyView {
  readonly version: number;
  readonly conditions: readonly object[];
  readonly detectors: readonly object[];
  readonly receivers: readonly object[];
  readonly routes: readonly object[];
}

export interface OpenSessionView {
  readonly id: string;
  readonly name: string;
  readonly createdAtMs: number;
  readonly endsAtMs: number;
  readonly agent: string;
  readonly own: boolean;
}

export interface TokenView {
  readonly name: string;
  readonly role: Role;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly expiresAt?: string;
  readonly lastUsedAt?: string;
}

export interface Mistake {
  readonly path: string;
  readonly message: string;
}
