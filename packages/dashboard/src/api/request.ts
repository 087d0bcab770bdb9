/**
 * Calls the admin API. Every response and every failure passes through here, so that the shell knows the time of the last response and the
 * end of the session.
 */
import { contact } from "./contact.js";
import type { Mistake, RuleDiff } from "./shapes.js";

/** The service's problem details. Status 0: no response. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly remedy: string;
  readonly mistakes: readonly Mistake[];
  readonly currentVersion: number | undefined;
  readonly diff: RuleDiff | undefined;

  constructor(status: number, body: Partial<ProblemBody> = {}) {
    super(body.detail ?? (status === 0 ? "the service does not answer" : `the service answered ${status}`));
    this.status = status;
    this.code = body.code ?? "";
    this.remedy = body.remedy ?? "";
    this.mistakes = body.mistakes ?? [];
    this.currentVersion = body.currentVersion;
    this.diff = body.diff;
  }
}

interface ProblemBody {
  readonly detail: string;
  readonly code: string;
  readonly remedy: string;
  readonly mistakes: readonly Mistake[];
  readonly currentVersion: number;
  readonly diff: RuleDiff;
}

interface RequestOptions {
  readonly method?: "GET" | "PUT" | "POST" | "DELETE";
  readonly body?: unknown;
  /** The version that the change is based on. */
  readonly ifMatch?: number | undefined;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly signal?: AbortSignal;
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 10_000;

export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const { method = "GET", body, ifMatch, query = {}, signal, deadlineMs = DEADLINE_MS } = options;
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  const search = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  const deadline = AbortSignal.timeout(deadlineMs);
  const response = await fetch(`/admin/v1${path}${search}`, {
    method,
    credentials: "same-origin",
    // We never redirect, and a proxy's sign-in page is not an API response.
    redirect: "error",
    signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
    headers: {
      "x-sluice-dashboard": "1",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(ifMatch !== undefined && { "if-match": `"${ifMatch}"` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    contact.failed();
    throw new Problem(0);
  });
  // A gateway answering for a service that is down.
  if (response.status === 502 || response.status === 504) contact.failed();
  else contact.heard();
  if (response.status === 204) return undefined as T;
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && answer !== undefined) return answer as T;
  if (response.status === 401 && path !== "/session") contact.signedOut();
  throw new Problem(response.status, answer as Partial<ProblemBody> | undefined);
}
