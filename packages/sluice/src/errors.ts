/**
 * Every error that the library raises, in one table: code, HTTP status, meaning, remedy. `docs/errors.md` is generated from it.
 * A refusal is never one of these: errors mean that the caller or Sluice itself failed.
 */

interface ErrorKind {
  readonly status: number;
  readonly meaning: string;
  readonly remedy: string;
}

export const errorKinds = {
  "invalid-rules": {
    status: 400,
    meaning:
      "A rule document has mistakes. The message lists all of them, each with its path; of more than a hundred, the first hundred and how many more there are.",
    remedy: "Mend every place the message lists; the rules in force are unchanged.",
  },
  "invalid-request": {
    status: 400,
    meaning:
      "Attributes, cost, request id, lease id or another argument is malformed, or the request id was sent for another request. Nothing was charged.",
    remedy: "Send what the message says was expected.",
  },
  "too-complex": {
    status: 400,
    meaning:
      "Matching the request takes more steps than one request may, or more than 1000 rules apply to it, or more than 64 whose places or units it would hold (docs/rules.md, What matching costs). Nothing was charged.",
    remedy:
      "Send shorter values; or write fewer rules that one request meets, and fewer globs with text behind a wildcard.",
  },
  "invalid-setting": {
    status: 500,
    meaning: "An option of the limiter or the store, or a setting of the service, is wrong.",
    remedy: "Correct the setting that the message names.",
  },
  "unknown-rule": {
    status: 404,
    meaning: "A reset or a change names a rule that is not in force.",
    remedy: "Use the id of a rule in force.",
  },
  "unknown-reservation": {
    status: 404,
    meaning: "A reservation that is to be extended is not open: it was settled, has expired, or never was.",
    remedy: "Check again, for a new reservation; what the old one held stands as spent unless it was settled.",
  },
  "store-unavailable": {
    status: 503,
    meaning:
      "The store did not answer in time, reported an error, or a key under Sluice's prefix holds something that Sluice did not write.",
    remedy: "Check that the store is up and reachable; checks go on by each rule's onStoreFailure meanwhile.",
  },
  closed: {
    status: 503,
    meaning: "The limiter was used after its end.",
    remedy: "Do not use a limiter after close().",
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

/** One mistake in a document: its path, what was expected, what came. */
export interface Mistake {
  readonly path: string;
  readonly message: string;
}

export class SluiceError extends Error {
  override readonly name = "SluiceError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly remedy: string;
  /** All the mistakes, for `invalid-rules`; empty otherwise. */
  readonly mistakes: readonly Mistake[];
  /** For `store-unavailable`: whether the store may have executed the request without answering. */
  readonly mayHaveRun: boolean;

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; mistakes?: readonly Mistake[]; mayHaveRun?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = errorKinds[code].status;
    this.remedy = errorKinds[code].remedy;
    this.mistakes = options.mistakes ?? [];
    this.mayHaveRun = options.mayHaveRun ?? false;
  }
}
