/**
 * Every error that Sluice raises, in one table: code, HTTP status, remedy. `docs/errors.md` lists the same, held equal by a test.
 * A refusal is never one of these: errors mean that the caller or Sluice itself failed.
 */

interface ErrorKind {
  readonly status: number;
  readonly remedy: string;
}

export const errorKinds = {
  "invalid-rules": {
    status: 400,
    remedy: "Mend every place the message lists; the rules in force are unchanged.",
  },
  "invalid-request": {
    status: 400,
    remedy: "Send what the message says was expected.",
  },
  "too-complex": {
    status: 400,
    remedy:
      "Send shorter values; or write fewer rules that one request meets, and fewer globs with text behind a wildcard.",
  },
  "invalid-setting": {
    status: 500,
    remedy: "Correct the setting that the message names.",
  },
  "unknown-rule": {
    status: 404,
    remedy: "Use the id of a rule in force.",
  },
  "store-unavailable": {
    status: 503,
    remedy: "Check that the store is up and reachable; checks go on by each rule's onStoreFailure meanwhile.",
  },
  closed: {
    status: 503,
    remedy: "Do not use a limiter after close().",
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

/** One mistake in a document: where it is, what was expected, what came. */
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
  /** For `store-unavailable`: whether the store may have done what was asked, though it did not answer. */
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
