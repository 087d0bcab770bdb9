/** Client of the admin API, for `sluice rules`, `sluice top` and others. Prints refusals in the server's own words. */
import { Command, Option } from "commander";
import type { Mistake } from "sluice";
import { diffText } from "../configuration/diff-text.js";
import { isEmpty, type RuleDiff } from "../configuration/rule-diff.js";
import { printableLines } from "../printable.js";
import { clientSettings } from "../settings/settings.js";
import { readAdminToken } from "./admin-token.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import { noAnswer, tokenHints } from "./no-answer.js";

export interface AdminOptions {
  readonly server: string;
  readonly token?: string | undefined;
  readonly json: boolean;
}

export interface AdminCall {
  readonly method?: "GET" | "PUT" | "POST" | "DELETE";
  readonly query?: Readonly<Record<string, string | undefined>>;
  /** Already serialised JSON. */
  readonly body?: string;
  readonly ifMatch?: string | undefined;
}

interface Problem {
  readonly code?: string;
  readonly detail?: string;
  readonly mistakes?: readonly Mistake[];
  readonly diff?: RuleDiff;
  readonly currentVersion?: number;
}

/** Generous, for a document of eight megabytes. */
const TIMEOUT_MS = 60_000;

export function adminCommand(name: string): Command {
  const { server } = clientSettings();
  return new Command(name)
    .addOption(new Option("--server <url>", "the service to ask").env("SLUICE_SERVER").default(server))
    .option("--token <token>", "an admin token (SLUICE_ADMIN_TOKEN; default: the file under .sluice/)")
    .option("--json", "print JSON", false);
}

export function changeCommand(name: string): Command {
  return adminCommand(name)
    .option("-m, --message <text>", "why; kept with the version")
    .option("--if-match <version>", "only if this version is still the newest", wholeNumber)
    .option("--dry-run", "only tell what would change", false);
}

export function wholeNumber(text: string): string {
  if (/^\d{1,15}$/.test(text)) return text;
  throw new CommandFailure(`expected a version's number, got ${JSON.stringify(text)}`, exitStatus.misuse);
}

/** Returns the response's body, if it has one; rejects with a readable error. */
export async function askAdmin<T>(path: string, options: AdminOptions, call: AdminCall = {}): Promise<T> {
  const url = urlOf(path, options, call);
  const { method = "GET", body, ifMatch } = call;
  const headers = {
    ...authorization(options),
    ...(body !== undefined && { "content-type": "application/json" }),
    ...(ifMatch !== undefined && { "if-match": `"${ifMatch}"` }),
  };
  let answer: Response;
  try {
    const sent = body === undefined ? {} : { body };
    answer = await fetch(url, { method, headers, ...sent, signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    throw noAnswer(options.server, error);
  }
  const text = await answer.text();
  if (answer.ok) return (text === "" ? undefined : JSON.parse(text)) as T;
  throw new CommandFailure(printableLines(refusal(text, answer.status, options)));
}

/** A streaming response, which continues until it is aborted. */
export async function openAdmin(
  path: string,
  options: AdminOptions,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const url = urlOf(path, options, {});
  const answer = await fetch(url, { headers: authorization(options), signal }).catch((error: unknown) => {
    throw noAnswer(options.server, error);
  });
  if (answer.ok && answer.body !== null) return answer.body;
  throw new CommandFailure(printableLines(refusal(await answer.text(), answer.status, options)));
}

function authorization({ token }: AdminOptions): { authorization?: string } {
  const known = token ?? clientSettings().adminToken ?? readAdminToken();
  return known === undefined ? {} : { authorization: `Bearer ${known}` };
}

function urlOf(path: string, { server }: AdminOptions, { query = {} }: AdminCall): URL {
  if (!URL.canParse(server)) throw new CommandFailure(`--server: expected a URL, got ${server}`, exitStatus.misuse);
  const url = new URL(`/admin/v1${path}`, server);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  return url;
}

function refusal(text: string, status: number, options: AdminOptions): string {
  let problem: Problem;
  try {
    problem = JSON.parse(text) as Problem;
  } catch {
    // Not our error format: a proxy in between, or a different server.
    return `${options.server} answered ${status}: ${text.slice(0, 200)}`;
  }
  const { detail = "", code = "", mistakes = [], diff, currentVersion } = problem;
  if (mistakes.length > 0) return mistakes.map(({ path, message }) => `${path}: ${message}`).join("\n");
  const hint = status === 401 && authorization(options).authorization === undefined ? `; ${tokenHints.admin}` : "";
  return `${detail} (${status} ${code})${hint}${diff === undefined ? "" : changedMeanwhile(diff, currentVersion)}`;
}

function changedMeanwhile(diff: RuleDiff, currentVersion = 0): string {
  if (!isEmpty(diff)) return `\nchanged meanwhile:\n${diffText(diff)}`;
  return `\nwhat was changed meanwhile was changed back: --if-match ${currentVersion} names the same rules`;
}
