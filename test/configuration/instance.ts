/** One instance of configuration, limiter and admin API in this process, and a client for it. */
import type { FastifyInstance } from "fastify";
import { type CountingRule, createLimiter, type Limiter, type Store } from "sluice";
import { openTokens, registerAdministration } from "../../packages/server/src/administration/administration.js";
import {
  type Configuration,
  type ConfigurationOptions,
  startConfiguration,
} from "../../packages/server/src/configuration/configuration.js";
import { createEdge } from "../../packages/server/src/http/edge.js";
import { makeTempFolder } from "../harness/leash.js";
import type { AdminAnswer } from "./admin-answer.js";

export interface Instance {
  readonly configuration: Configuration;
  readonly limiter: Limiter;
  readonly app: FastifyInstance;
  readonly dataFolder: string;
  readonly said: string[];
  call(method: "GET" | "PUT" | "POST" | "DELETE", path: string, options?: CallOptions): Promise<Reply>;
  stop(): Promise<void>;
}

interface CallOptions {
  readonly body?: unknown;
  readonly token?: string | undefined;
  readonly headers?: Record<string, string>;
}

export interface Reply {
  readonly status: number;
  readonly body: AdminAnswer;
  readonly headers: Record<string, unknown>;
}

export const ADMIN_TOKEN = "an-admin-token-for-tests";

export function perUser(limit: number, more: Partial<CountingRule> = {}): CountingRule {
  return { id: "per-user", key: ["user"], algorithm: "fixed-window", limit, window: "1h", ...more } as CountingRule;
}

export async function startInstance(
  options: Partial<ConfigurationOptions> & {
    store?: Store;
    prepare?: (app: FastifyInstance) => Promise<unknown>;
    ownToken?: boolean;
  } = {},
): Promise<Instance> {
  const { store, prepare, ownToken, ...rest } = options;
  const dataFolder = rest.dataFolder ?? makeTempFolder("data");
  const said: string[] = [];
  const say = (level: string) => (message: string, fields?: object) =>
    void said.push(`${level}: ${message} ${JSON.stringify(fields ?? {})}`);
  const log = { info: say("info"), warn: say("warn"), error: say("error") };
  const configuration = await startConfiguration({ pollMs: 100, log, ...rest, dataFolder });
  const { rules, version } = configuration.current;
  const limiter = createLimiter({ rules, rulesVersion: version, ...(store && { store }) });
  configuration.onChange((book) => limiter.swapRules(book.rules, book.version));
  const { repository } = configuration;
  const adminToken = ownToken ? undefined : ADMIN_TOKEN;
  const tokens = await openTokens({ dataFolder, adminToken, repository, log });
  const app = createEdge({
    log,
    tls: undefined,
    asksForToken: false,
    isLameDuck: () => false,
    isOwnHost: () => true,
  });
  await prepare?.(app);
  await registerAdministration(app, { configuration, limiter, tokens, log });
  return {
    configuration,
    limiter,
    app,
    dataFolder,
    said,
    async call(method, path, { body, token = ADMIN_TOKEN, headers = {} } = {}) {
      const reply = await app.inject({
        method,
        url: `/admin/v1${path}`,
        headers: {
          ...(token !== "" && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { payload: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const answer = (reply.body === "" ? undefined : reply.json()) as AdminAnswer;
      return { status: reply.statusCode, body: answer, headers: reply.headers };
    },
    async stop() {
      await app.close();
      await limiter.close();
      await configuration.close();
    },
  };
}

/** Waits for what should come by itself; a test that waits in vain fails with what it waited for. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 60_000,
): Promise<void> {
  const giveUpAtMs = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > giveUpAtMs) throw new Error(`within ${withinMs} ms it did not come true that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
