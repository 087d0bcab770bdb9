/**
 * Detects trouble and sends alerts. Every few seconds: elect a leader -> evaluate every condition -> judge -> keep -> send.
 *
 *   leader     evaluates all of it, keeps alerts in the shared state, sends messages
 *   follower   shows what the leader keeps
 *   alone      the shared state cannot be written (Redis is gone, or full): evaluates what it sees itself, and sends that from memory
 *
 * Nothing here is on the path of a request, and a round that fails is followed by the next.
 */
import { LeaderElection, type Leadership } from "../../instance/leader-election.js";
import { parseSharedText } from "../../instance/parse-shared-text.js";
import type { Log } from "../../log.js";
import type { AlertsView, AlertView } from "../views.js";
import { AlertBook, type KeptAlert } from "./alert-book.js";
import { AlertEvaluator, type EvaluatorOptions } from "./alert-evaluator.js";
import { AlertStore } from "./alert-store.js";
import { type WebhookState, Webhooks, type WebhooksOptions } from "./webhooks.js";

export interface AlertsOptions extends EvaluatorOptions, Omit<WebhooksOptions, "log"> {
  readonly log: Log;
  /** Default 5 s. */
  readonly everyMs?: number;
  /** How long nothing must be found before an alert is over, whatever its kind. Default: see `alert-book.ts`. */
  readonly quietMs?: number;
}

const EVERY_MS = 5_000;
/** A message that a watcher did not get rid of is sent by the next one, if it is news still. */
const NEWS_FOR_MS = 3_600_000;
/** Earlier versions run for the same name: an upgrade must not elect two. */
const ELECTION = "alerts:duty";
const WEBHOOK_STATES = "alerts:webhooks";
const STATES_KEEP_MS = 8 * 24 * 3_600_000;
const VIEW_FOR_MS = 1_000;

export class Alerts {
  readonly #options: AlertsOptions;
  readonly #election: LeaderElection;
  readonly #kept: AlertStore;
  readonly #evaluator: AlertEvaluator;
  readonly #webhooks: Webhooks;
  readonly #book: AlertBook;
  /** Ended while nothing could be kept. */
  #endedAlone: KeptAlert[] = [];
  #was: Leadership = "follower";
  /** Somebody else wrote what this instance thought to know. */
  #outdated = false;
  #failing = false;
  #firing = 0;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #view: { atMs: number; stored: Promise<Stored> } | undefined;

  constructor(options: AlertsOptions) {
    const everyMs = options.everyMs ?? EVERY_MS;
    this.#options = options;
    this.#book = new AlertBook(options.quietMs);
    this.#election = new LeaderElection({
      shared: options.shared,
      name: ELECTION,
      instance: options.instance,
      keepMs: 3 * everyMs,
    });
    this.#kept = new AlertStore(options.shared);
    this.#evaluator = new AlertEvaluator(options);
    this.#webhooks = new Webhooks(options);
  }

  start(): void {
    const everyMs = this.#options.everyMs ?? EVERY_MS;
    const again = (): void => {
      this.#timer = setTimeout(() => {
        this.#round = this.round(Date.now()).finally(() => this.#timer !== undefined && again());
      }, everyMs);
      this.#timer.unref();
    };
    again();
  }

  /** How many fire, as of the last round. */
  firing(): number {
    return this.#firing;
  }

  /** One round. Never rejects. */
  async round(nowMs: number): Promise<void> {
    try {
      const leadership = await this.#election.ask();
      if (leadership === "follower") await this.#follow();
      else await this.#watch(leadership, nowMs);
      this.#was = leadership;
      this.#view = undefined;
      this.#failing = false;
    } catch (error) {
      // The shared state failed between two steps: the next round reads it again.
      this.#was = "follower";
      if (!this.#failing)
        this.#options.log.warn("alert evaluation fails; the next round tries again", { error: String(error) });
      this.#failing = true;
    }
  }

  async #follow(): Promise<void> {
    this.#book.load([]);
    this.#endedAlone = [];
    this.#firing = (await this.#kept.readOpen()).length;
  }

  async #watch(leadership: "leader" | "alone", nowMs: number): Promise<void> {
    if (leadership === "leader" && (this.#was !== "leader" || this.#outdated)) await this.#takeOver(nowMs);
    const round = await this.#evaluator.look(leadership, nowMs);
    const before = new Map(this.#book.open.map((alert) => [alert.subject, alert]));
    const { began, ended } = this.#book.judge({ ...round, nowMs });
    const worse = this.#book.open.filter(({ subject, told }) => !told && before.get(subject)?.told === true);
    for (const alert of [...began, ...worse]) {
      if (await this.#keepOpen(alert, leadership)) this.#announce(alert);
    }
    for (const alert of ended) {
      const saved = leadership === "alone" ? true : await this.#kept.saveEnded(alert);
      if (leadership === "alone") this.#endedAlone.push(alert);
      if (saved) this.#announce(alert);
    }
    this.#firing = this.#book.open.length;
  }

  /** Takes over from other leaders: firing alerts, and undelivered messages. Findings from the time alone are kept from now on. */
  async #takeOver(nowMs: number): Promise<void> {
    this.#outdated = false;
    const mine = this.#book.open;
    const open = await this.#kept.readOpen();
    // Detectors get their quiet time to find again what they found.
    this.#book.load(open.map((alert) => ({ ...alert, lastSeenMs: nowMs })));
    for (const alert of mine) {
      if (open.some(({ subject }) => subject === alert.subject)) continue;
      this.#book.put(alert);
      await this.#kept.saveOpen(alert);
    }
    for (const alert of this.#endedAlone) {
      await this.#kept.saveEnded(alert);
      if (open.some(({ id }) => id === alert.id)) this.#book.drop(alert.subject);
    }
    const mineIds = new Set([...mine, ...this.#endedAlone].map(({ id }) => id));
    this.#endedAlone = [];
    const untold = [...open, ...(await this.#kept.readKept())].filter(
      ({ told, id, endedAtMs = nowMs }) => !told && !mineIds.has(id) && nowMs - endedAtMs < NEWS_FOR_MS,
    );
    for (const alert of untold) this.#tell(alert);
  }

  /** False if another instance keeps it already. */
  async #keepOpen(alert: KeptAlert, leadership: Leadership): Promise<boolean> {
    if (leadership === "alone" || (await this.#kept.saveOpen(alert))) return true;
    this.#book.drop(alert.subject);
    this.#outdated = true;
    return false;
  }

  #announce(alert: KeptAlert): void {
    const { id, kind, rule, severity, summary } = alert;
    const fields = { alert: id, kind, ...(rule !== undefined && { rule }), severity, summary };
    if (alert.state === "firing") this.#options.log.warn("an alert fires", fields);
    else this.#options.log.info("an alert is over", fields);
    this.#tell(alert);
  }

  #tell(alert: KeptAlert): void {
    void this.#webhooks
      .tell(alert)
      // Closed before: the next leader sends it.
      .then((isDone) => (isDone ? this.#markTold(alert) : undefined))
      // The shared state is away: the next leader sends it once more.
      .catch(() => undefined);
  }

  async #markTold(alert: KeptAlert): Promise<void> {
    if (alert.state === "resolved") await this.#kept.saveKept({ ...alert, told: true });
    else {
      const open = this.#book.open.find(({ id, severity }) => id === alert.id && severity === alert.severity);
      if (open === undefined) return;
      this.#book.put({ ...open, told: true });
      await this.#kept.saveOpen({ ...open, told: true });
    }
    await this.#keepWebhookStates();
  }

  async #keepWebhookStates(): Promise<void> {
    const { shared } = this.#options;
    const was = await shared.read(WEBHOOK_STATES);
    const now = JSON.stringify(this.#webhooks.states);
    if (was !== now) await shared.swap(WEBHOOK_STATES, { was, now, keepMs: STATES_KEEP_MS });
  }

  async read(): Promise<AlertsView> {
    const nowMs = Date.now();
    if (this.#view === undefined || nowMs - this.#view.atMs >= VIEW_FOR_MS) {
      this.#view = { atMs: nowMs, stored: this.#readStored() };
    }
    const stored = await this.#view.stored;
    const byId = new Map<string, KeptAlert>();
    // The later wins: what is over is over, and what this instance holds is newer than what it wrote.
    for (const alert of [...stored.open, ...this.#book.open, ...stored.kept, ...this.#endedAlone])
      byId.set(alert.id, alert);
    const alerts = [...byId.values()].map(shownAlert).sort(firingThenNewest);
    return {
      atMs: nowMs,
      scope: stored.isRead ? "fleet" : "instance",
      alerts,
      webhooks: this.#webhooks.states.map((state, i) => latest(state, stored.webhooks[i])),
    };
  }

  /** While the shared state is away, this instance shows what it knows itself. */
  async #readStored(): Promise<Stored> {
    try {
      const [open, kept, states] = await Promise.all([
        this.#kept.readOpen(),
        this.#kept.readKept(),
        this.#options.shared.read(WEBHOOK_STATES),
      ]);
      return { isRead: true, open, kept, webhooks: parseSharedText<WebhookState[]>(states) ?? [] };
    } catch {
      return { isRead: false, open: [], kept: [], webhooks: [] };
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#round;
    this.#webhooks.close();
    await this.#election.resign();
  }
}

interface Stored {
  readonly isRead: boolean;
  readonly open: readonly KeptAlert[];
  readonly kept: readonly KeptAlert[];
  readonly webhooks: readonly WebhookState[];
}

function shownAlert({ subject: _, lastSeenMs: __, told: ___, ...alert }: KeptAlert): AlertView {
  return alert;
}

function firingThenNewest(a: AlertView, b: AlertView): number {
  if (a.state !== b.state) return a.state === "firing" ? -1 : 1;
  return b.startedAtMs - a.startedAtMs;
}

/** This instance's state if it has sent anything, else the state that the leader wrote. */
function latest(own: WebhookState, stored: WebhookState | undefined): WebhookState {
  const silent = own.lastSentAtMs === undefined && own.lastError === undefined;
  return silent && stored?.url === own.url ? stored : own;
}
