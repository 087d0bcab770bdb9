/**
 * The contract for what people set about alerts: every version of the alert policy, the receivers' secrets, and silences.
 * Documents never hold secrets, so that every version can be shown; of a secret only the newest value is kept.
 */

export interface StoredAlertPolicy {
  readonly version: number;
  readonly createdAtMs: number;
  readonly author: string;
  readonly message: string;
  readonly document: string;
}

/** By receiver, then by field. */
export type ReceiverSecrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface NewAlertPolicy {
  /** The version that the change was made from; 0 for the first. */
  readonly base: number;
  readonly author: string;
  readonly message: string;
  readonly document: string;
  /** All of them: what is not named here is forgotten. */
  readonly secrets: ReceiverSecrets;
  /** For the audit. */
  readonly summary: Readonly<Record<string, unknown>>;
}

/** Alerts that a silence holds back: all of its fields must fit. */
export interface SilenceMatch {
  readonly rule?: string;
  readonly tag?: string;
  readonly kind?: string;
}

export interface Silence {
  readonly id: string;
  readonly match: SilenceMatch;
  readonly reason: string;
  readonly author: string;
  readonly createdAtMs: number;
  readonly endsAtMs: number;
}

export interface AlertRepository {
  /** The newest version and its secrets; undefined where nobody has set one. */
  policy(): Promise<(StoredAlertPolicy & { readonly secrets: ReceiverSecrets }) | undefined>;
  /** One transaction: the version, the secrets, the audit entry. Undefined, and nothing written, if `base` is not the newest any more. */
  commitPolicy(change: NewAlertPolicy): Promise<number | undefined>;
  /** Those that are not over, the next to end first. */
  silences(): Promise<Silence[]>;
  /** False where as many as are kept are there already. */
  addSilence(silence: Silence): Promise<boolean>;
  /** False if there is none, or it is over. */
  endSilence(id: string, by: string): Promise<boolean>;
}
