/** HTTP client for commands that call a running service. Errors are shown in the service's own words. */
import { Command, Option } from "commander";
import { printableLines } from "../printable.js";
import { clientSettings } from "../settings/settings.js";
import { readAdminToken } from "./admin-token.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import { noAnswer, tokenHints } from "./no-answer.js";

export interface ClientOptions {
  readonly server: string;
  readonly token?: string | undefined;
}

/** A healthy service answers within seconds, and a script should not hang. */
const TIMEOUT_MS = 10_000;

/** A command that calls the data plane: `--server`, `--token`, `--json`. */
export function clientCommand(name: string): Command {
  const { server, apiToken } = clientSettings();
  return new Command(name)
    .addOption(new Option("--server <url>", "the service to ask").env("SLUICE_SERVER").default(server))
    .addOption(
      new Option("--token <token>", "the API token, where one is set (SLUICE_API_TOKEN)").default(apiToken, "none"),
    )
    .option("--json", "print JSON", false);
}

/** A command that calls the admin API: the same options. */
export function adminCommand(name: string): Command {
  return new Command(name)
    .addOption(new Option("--server <url>", "the service to ask").env("SLUICE_SERVER").default(clientSettings().server))
    .option("--token <token>", "an admin token (SLUICE_ADMIN_TOKEN; default: the file under .sluice/)")
    .option("--json", "print JSON", false);
}

/** The options of such a command, with the token found locally if none was given. */
export function withAdminToken<T extends ClientOptions>(options: T): T {
  return { ...options, token: options.token ?? clientSettings().adminToken ?? readAdminToken() };
}

export async function get(path: string, options: ClientOptions): Promise<unknown> {
  return await (await ask(path, options, {})).json();
}

export async function post(path: string, body: unknown, options: ClientOptions): Promise<Record<string, unknown>> {
  const answer = await ask(path, options, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as Record<string, unknown>;
}

async function ask(path: string, { server, token }: ClientOptions, request: RequestInit): Promise<Response> {
  if (!URL.canParse(server)) throw new CommandFailure(`--server: expected a URL, got ${server}`, exitStatus.misuse);
  const headers = { ...request.headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  let answer: Response;
  try {
    answer = await fetch(new URL(path, server), { ...request, headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    throw noAnswer(server, error);
  }
  if (answer.ok) return answer;
  throw explainFailure({ path, server, token, status: answer.status, text: await answer.text() });
}

function hintFor(path: string): string {
  return path.startsWith("/admin/") ? tokenHints.admin : tokenHints.api;
}

/** The error of an unsuccessful response, in the service's own words. */
export function explainFailure(answer: {
  readonly path: string;
  readonly server: string;
  readonly token: string | undefined;
  readonly status: number;
  readonly text: string;
}): CommandFailure {
  const { path, server, token, status, text } = answer;
  const hint = status === 401 && token === undefined ? `; ${hintFor(path)}` : "";
  return new CommandFailure(
    printableLines(wordsOf(text, status) ?? `${server} answered ${status}: ${text.slice(0, 200)}`) + hint,
  );
}

function wordsOf(text: string, status: number): string | undefined {
  try {
    const { detail, code } = JSON.parse(text) as { detail?: string; code?: string };
    return detail === undefined ? undefined : `${detail} (${status} ${code ?? ""})`.replace(" )", ")");
  } catch {
    // Not our error format: a proxy in between, or a different server.
    return undefined;
  }
}
