/**
 * One receiver's queue: messages in order, retried with exponential backoff and jitter, and eventually given up. A slow receiver delays
 * only its own messages; a full queue drops the oldest.
 */
import type { Log } from "../../log.js";
import { AddressRefused } from "./public-address.js";
import type { AlertMessage } from "./webhook-message.js";
import { PostFailed } from "./webhook-post.js";

export interface LaneOptions {
  /** Logs which receiver failed, without secrets. */
  readonly log: Pick<Log, "warn">;
  /** The first pause; doubles with each attempt, up to a minute. Default 1 s. */
  readonly pauseMs?: number;
}

interface LaneState {
  readonly lastSentAtMs?: number;
  readonly lastError?: string;
}

const MOST_QUEUED = 100;
const MOST_ATTEMPTS = 8;
const LONGEST_PAUSE_MS = 60_000;

interface Queued {
  readonly alert: AlertMessage;
  readonly done: (isDone: boolean) => void;
}

export class DeliveryLane {
  readonly #name: string;
  readonly #send: (alert: AlertMessage) => Promise<void>;
  readonly #options: LaneOptions;
  readonly #queue: Queued[] = [];
  #state: LaneState = {};
  #busy = false;
  #closed = false;
  #wake: (() => void) | undefined;

  /** `send` makes one attempt, with its own deadline. */
  constructor(name: string, send: (alert: AlertMessage) => Promise<void>, options: LaneOptions) {
    this.#name = name;
    this.#send = send;
    this.#options = options;
  }

  get state(): LaneState {
    return this.#state;
  }

  /** Resolves when the message was delivered or given up; false if the lane was closed first. */
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
        await this.#send(alert);
        this.#state = { lastSentAtMs: Date.now() };
        return true;
      } catch (error) {
        const again = error instanceof PostFailed ? error.retry : !(error instanceof AddressRefused);
        const given = !again || attempt === MOST_ATTEMPTS;
        this.#failed(`${(error as Error).message}${given ? "; given up" : ""}`);
        if (given) return true;
        // Jitter: keeps a recovered receiver from being hit by everyone at once.
        const longestMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2 ** (attempt - 1));
        await this.#pause(longestMs * (0.5 + 0.5 * Math.random()));
      }
    }
    return false;
  }

  #failed(lastError: string): void {
    this.#state = { ...this.#state, lastError };
    this.#options.log.warn("an alert could not be sent", { webhook: this.#name, error: lastError });
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
