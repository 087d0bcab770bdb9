/**
 * What can go wrong when rules are read or changed, beside a document with mistakes (the library's `invalid-rules`): code,
 * HTTP status, remedy, in one table. `docs/administration.md` lists the same, held equal by a test.
 */

interface ErrorKind {
  readonly status: number;
  readonly remedy: string;
}

export const configurationErrorKinds = {
  "version-mismatch": {
    status: 412,
    remedy: "Look at the difference, apply your change to the current version, and send its number in If-Match.",
  },
  "unknown-version": { status: 404, remedy: "Use a version that GET /admin/v1/versions lists." },
  "no-candidate": { status: 409, remedy: "Give the rule a candidate first." },
  "too-busy": { status: 409, remedy: "Others change the rules at the same time; try again." },
  "rules-from-file": { status: 409, remedy: "The rules come from --rules FILE: change that file, it is read again." },
  "database-unavailable": {
    status: 503,
    remedy: "Check that the database is up and reachable; checks go on with the rules in force meanwhile.",
  },
} as const satisfies Record<string, ErrorKind>;

export type ConfigurationErrorCode = keyof typeof configurationErrorKinds;

export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly code: ConfigurationErrorCode;
  readonly status: number;
  readonly remedy: string;
  /** What a caller can use beside the message: the current version, the difference. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ConfigurationErrorCode,
    message: string,
    options: { cause?: unknown; details?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = configurationErrorKinds[code].status;
    this.remedy = configurationErrorKinds[code].remedy;
    this.details = options.details ?? {};
  }
}
