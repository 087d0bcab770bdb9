/**
 * Delivers messages to webhooks: in order for each, tried again with growing, jittered pauses, and given up after a while. A slow receiver
 * delays its own messages only; a queue that is full drops the oldest. URLs may hold secrets: only scheme and host are shown.
 */
import { lookup } from "node:dns/promises";
import type { Log } from "../../log.js";
import type { Webhook } from "../../settings/accepted-settings.js";
import type { AlertsView } from "../views.js";
import { type Address, AddressRefused, type Resolve } from "./public-address.js";
import { type AlertMessage, messageBody, messageId, signatureHeaders } from "./webhook-message.js";
import { PostFailed, postOnce } from "./webhook-post.js";

export interface WebhooksOptions {
  readonly webhooks: readonly Webhook[];
  readonly secret?: string | undefined;
  readonly allowPrivate: boolean;
  readonly log: Pick<Log, "warn">;
  readonly resolve?: Resolve;
  /** Of an attempt. Default 5 s. */
  readonly deadlineMs?: number;
  /** The first pause; each next one is twice as long, up to a minute. Default 1 s. */
  readonly pauseMs?: number;
}

export type WebhookState = AlertsView["webhooks"][number];

const MOST_QUEUED = 100;
const MOST_ATTEMPTS = 8;
const LONGEST_PAUSE_MS = 60_000;

/** Without user, path and query: Slack's path is the key to the channel. */
function shownUrl({ url }: Webhook): string {
  return url.pathname === "/" && url.search === "" ? url.origin : `${url.origin}/…`;
}

export class Webhooks {
  readonly #lanes: readonly Lane[];

  constructor(options: WebhooksOptions) {
    this.#lanes = options.webhooks.map((webhook) => new Lane(webhook, options));
  }

  get states(): readonly WebhookState[] {
    return this.#lanes.map((lane) => lane.state);
  }

  /** Resolves when every webhook has it or was given up; false if this was closed before. Never rejects. */
  async tell(alert: AlertMessage): Promise<boolean> {
    return (await Promise.all(this.#lanes.map((lane) => lane.add(alert)))).every((isDone) => isDone);
  }

  /** Leaves what is not yet delivered to others. */
  close(): void {
    for (const lane of this.#lanes) lane.close();
  }
}

interface Queued {
  readonly alert: AlertMessage;
  readonly done: (isDone: boolean) => void;
}

/** One webhook, one message at a time. */
class Lane {
  readonly #webhook: Webhook;
  readonly #options: WebhooksOptions;
  readonly #queue: Queued[] = [];
  #state: WebhookState;
  #busy = false;
  #closed = false;
  #wake: (() => void) | undefined;

  constructor(webhook: Webhook, options: WebhooksOptions) {
    this.#webhook = webhook;
    this.#options = options;
    this.#state = { url: shownUrl(webhook), format: webhook.format };
  }

  get state(): WebhookState {
    return this.#state;
  }

  add(alert: AlertMessage): Promise<boolean> {
    return new Promise((done) => {
      if (this.#closed) return done(false);
      if (this.#queue.length >= MOST_QUEUED) {
        this.#queue.shift()!.done(true);
        this.#failed(`${MOST_QUEUED} messages wait already; the oldest was dropped`);
      }
      this.#queue.push({ alert, done });
      if (!this.#busy) void this.#work();
    });
  }

  close(): void {
    this.#closed = true;
    this.#wake?.();
    for (const { done } of this.#queue.splice(0)) done(false);
  }

  async #work(): Promise<void> {
    this.#busy = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      next.done(await this.#deliver(next.alert));
    }
    this.#busy = false;
  }

  /** False if closed before it was delivered or given up. */
  async #deliver(alert: AlertMessage): Promise<boolean> {
    const { pauseMs = 1_000 } = this.#options;
    for (let attempt = 1; !this.#closed; attempt++) {
      try {
        await this.#post(alert);
        this.#state = { url: this.#state.url, format: this.#state.format, lastSentAtMs: Date.now() };
        return true;
      } catch (error) {
        const again = error instanceof PostFailed ? error.retry : !(error instanceof AddressRefused);
        const given = !again || attempt === MOST_ATTEMPTS;
        this.#failed(`${(error as Error).message}${given ? "; given up" : ""}`);
        if (given) return true;
        // Half of it by chance: receivers that come back are not met by all at once.
        const longestMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2 ** (attempt - 1));
        await this.#pause(longestMs * (0.5 + 0.5 * Math.random()));
      }
    }
    return false;
  }

  #post(alert: AlertMessage): Promise<void> {
    const { secret, allowPrivate, resolve = resolveByDns, deadlineMs = 5_000 } = this.#options;
    const { url, format } = this.#webhook;
    const body = messageBody(alert, format);
    const signed =
      secret === undefined || format === "slack"
        ? {}
        : signatureHeaders(body, { secret, id: messageId(alert), atMs: Date.now() });
    const headers = { "content-type": "application/json", "user-agent": "sluice", ...signed };
    return postOnce({ url, body, headers, allowPrivate, resolve, deadlineMs });
  }

  #failed(lastError: string): void {
    this.#state = { ...this.#state, lastError };
    this.#options.log.warn("an alert could not be sent", { webhook: this.#state.url, error: lastError });
  }

  #pause(ms: number): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

async function resolveByDns(hostname: string): Promise<Address[]> {
  const addresses = await lookup(hostname, { all: true });
  return addresses.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}
