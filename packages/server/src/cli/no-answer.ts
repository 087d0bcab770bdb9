/** Messages for a service that does not answer, or requires a token that the command does not have. */
import { CommandFailure } from "./command-failure.js";

/** Whether a URL names this machine; `new URL` normalises other notations of 127.0.0.1. */
export function isLoopback(server: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(new URL(server).hostname);
}

export function noAnswer(server: string, error: unknown): CommandFailure {
  if (isBadPort(error)) {
    return new CommandFailure(
      `${server} was not asked: browsers and fetch never call this port (https://fetch.spec.whatwg.org/#port-blocking). Serve on another`,
    );
  }
  return new CommandFailure(`${server} did not answer: ${whyOf(error)}. ${remedyFor(server)}`);
}

function isBadPort(error: unknown): boolean {
  return ((error as Error).cause as Error | undefined)?.message === "bad port";
}

function whyOf(error: unknown): string {
  const { cause, message, name } = error as Error;
  const { code, message: deeper } = (cause ?? {}) as Partial<NodeJS.ErrnoException>;
  if (name === "TimeoutError") return "it took too long";
  if (code === "ECONNREFUSED") return "nothing listens there";
  if (code === "ENOTFOUND") return "there is no such host";
  return code ?? deeper ?? message;
}

function remedyFor(server: string): string {
  const { port, protocol } = new URL(server);
  if (!isLoopback(server)) return "Check the address of --server (SLUICE_SERVER), and that the service is up";
  const used = port === "" ? (protocol === "https:" ? "443" : "80") : port;
  const start = used === "8080" ? "sluice serve" : `sluice serve --port ${used}`;
  return `Start it with "${start}", or name another with --server (SLUICE_SERVER)`;
}

/** Appended to a 401 if no token was sent. */
export const tokenHints = {
  api: "give the API token with --token or SLUICE_API_TOKEN",
  admin:
    "give an admin token with --token or SLUICE_ADMIN_TOKEN, or run this in the service's folder, where .sluice/admin-token is read",
} as const;
