/**
 * Detects problems and sends alerts. Every few seconds: elect a leader -> evaluate every condition -> update alerts -> store -> send.
 *
 *   leader     evaluates everything, stores alerts in the shared state, sends messages
 *   follower   shows what the leader stored
 *   alone      the shared state cannot be written (Redis is down, or full): evaluates what it sees itself, and sends alerts from memory
 *
 * Nothing here is on the request path, and a round that fails is followed by the next.
 */
import type { PolicyInForce } from "../../configuration/alert-policies.js";
import { LeaderElection, type Leadership } from "../../instance/leader-election.js";
import { parseSharedText } from "../../instance/parse-shared-text.js";
import type { Log } from "../../log.js";
import type { AlertsView, AlertView } from "../views/alerts.js";
import { AlertBook, type KeptAlert } from "./alert-book.js";
import { AlertEvaluator, type EvaluatorOptions } from "./alert-evaluator.js";
import { type Acknowledgement, AlertStore } from "./alert-store.js";
import { receiversFor, silencedUntil, type TagsOf } from "./policy-match.js";
import { type ReceiverState, Receivers, type ReceiversOptions } from "./receivers.js";
import type { AlertMessage } from "./webhook-message.js";
import { type WebhookState, Webhooks, type WebhooksOptions } from "./webhooks.js";

export interface AlertsOptions
  extends EvaluatorOptions,
    Omit<WebhooksOptions, "log">,
    Pick<ReceiversOptions, "smtp" | "consoleUrl"> {
  readonly log: Log;
  /** The alert policy; never rejects. Absent: none. */
  readonly policy?: () => Promise<PolicyInForce>;
  /** Default 5 s. */
  readonly everyMs?: number;
  /** Overrides the quiet time of every kind. Default: see `alert-book.ts`. */
  readonly quietMs?: number;
}

const EVERY_MS = 5_000;
/** A message that one leader could not deliver is sent by the next one, if it is still recent. */
const NEWS_FOR_MS = 3_600_000;
/** Older releases compete under the same name: an upgrade must not elect two leaders. */
const ELECTION = "alerts:duty";
const WEBHOOK_STATES = "alerts:webhooks";
const RECEIVER_STATES = "alerts:receivers";
const nothingSet: PolicyInForce = {
  version: 0,
  policy: { conditions: [], detectors: [], receivers: [], routes: [] },
  secrets: {},
  silences: [],
};
const STATES_KEEP_MS = 8 * 24 * 3_600_000;
const VIEW_FOR_MS = 1_000;

export class Alerts {
  readonly #options: AlertsOptions;
  readonly #election: LeaderElection;
  readonly #kept: AlertStore;
  readonly #evaluator: AlertEvaluator;
  readonly #webhooks: Webhooks;
  readonly #receivers: Receivers;
  readonly #tagsOf: TagsOf;
  readonly #book: AlertBook;
  /** Alerts that ended while nothing could be stored. */
  #endedAlone: KeptAlert[] = [];
  /** Acknowledgements by alert, as last read, plus those made here while nothing can be shared. */
  #acknowledged: ReadonlyMap<string, Acknowledgement> = new Map();
  #policy = nothingSet;
  #was: Leadership = "follower";
  /** Another instance overwrote state that this one relied on. */
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
    this.#receivers = new Receivers(options);
    this.#tagsOf = options.tagsOf ?? (() => []);
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

  /** Number of firing alerts in the last round. */
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
      // The shared state failed in between: the next round reads it again.
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
    await this.#readPolicy();
    if (leadership === "leader" && (this.#was !== "leader" || this.#outdated)) await this.#takeOver(nowMs);
    const round = await this.#evaluator.look(leadership, nowMs, this.#policy.policy);
    const before = new Map(this.#book.open.map((alert) => [alert.subject, alert]));
    const { began, ended } = this.#book.judge({ ...round, nowMs });
    const worse = this.#book.open.filter(({ subject, severity }) => {
      const was = before.get(subject);
      return was !== undefined && was.severity !== severity;
    });
    for (const alert of [...began, ...worse]) {
      const marked = this.#muteOrSend(alert, nowMs);
      if (!(await this.#keepOpen(marked, leadership))) continue;
      this.#announce(marked, worse.includes(alert) ? { event: "worse" } : {});
    }
    for (const { muted, ...alert } of ended) {
      const isNews = !(muted && !alert.sent);
      const over = isNews ? alert : { ...alert, told: true };
      const saved = leadership === "alone" ? true : await this.#kept.saveEnded(over);
      if (leadership === "alone") this.#endedAlone.push(over);
      if (saved) this.#announce(over);
    }
    await this.#goOn({ before, leadership, nowMs });
    this.#firing = this.#book.open.length;
  }

  /**
   * Handles alerts that keep firing: stores updated texts, forwards acknowledgements, sends alerts whose silence ended and reminders that
   * are due.
   */
  async #goOn(round: {
    before: ReadonlyMap<string, KeptAlert>;
    leadership: "leader" | "alone";
    nowMs: number;
  }): Promise<void> {
    const { before, leadership, nowMs } = round;
    if (this.#book.open.length === 0) return;
    const known = this.#acknowledged;
    if (leadership === "leader") this.#acknowledged = await this.#kept.readAcknowledgements();
    for (const alert of this.#book.open) {
      const was = before.get(alert.subject);
      if (was === undefined) continue;
      const acknowledged = this.#acknowledged.get(alert.id);
      if (acknowledged !== undefined && known.get(alert.id) === undefined)
        this.#tell({ ...alert, acknowledged }, { event: "acknowledged" });
      let now = alert;
      if (alert.muted && this.#silencedUntil(alert, nowMs) === undefined) {
        now = this.#muteOrSend(alert, nowMs);
        this.#announce(now);
      } else if (acknowledged === undefined && alert.told && !alert.muted) now = this.#remind(alert, nowMs);
      const isRenewed = was.summary !== now.summary && was.severity === now.severity;
      if (now === alert && !isRenewed) continue;
      this.#book.put(now);
      await this.#keepOpen(now, leadership);
    }
  }

  /** Resends the alert to receivers whose repeat interval has passed. */
  #remind(alert: KeptAlert, nowMs: number): KeptAlert {
    if (this.#silencedUntil(alert, nowMs) !== undefined) return alert;
    const due = [...receiversFor(this.#policy.policy, alert, this.#tagsOf)]
      .filter(([id, everyMs]) => nowMs - (alert.reminded?.[id] ?? alert.startedAtMs) >= everyMs)
      .map(([id]) => id);
    if (due.length === 0) return alert;
    void this.#receivers.tell({ ...alert, event: "reminder", sentAtMs: nowMs }, new Set(due));
    return { ...alert, reminded: { ...alert.reminded, ...Object.fromEntries(due.map((id) => [id, nowMs])) } };
  }

  #muteOrSend({ muted: _, ...alert }: KeptAlert, nowMs: number): KeptAlert {
    const isSilenced = this.#silencedUntil(alert, nowMs) !== undefined;
    const marked = { ...alert, ...(isSilenced ? { muted: true, sent: alert.sent ?? false } : { sent: true }) };
    this.#book.put(marked);
    return marked;
  }

  #silencedUntil(alert: AlertView, nowMs: number): number | undefined {
    return silencedUntil(this.#policy.silences, alert, { tagsOf: this.#tagsOf, nowMs });
  }

  async #readPolicy(): Promise<void> {
    this.#policy = (await this.#options.policy?.()) ?? nothingSet;
    this.#receivers.follow(this.#policy);
  }

  /** Undefined if no such alert is firing. */
  async acknowledge(id: string, given: Acknowledgement): Promise<AlertView | undefined> {
    const { alerts } = await this.read();
    const alert = alerts.find((one) => one.id === id && one.state === "firing");
    if (alert === undefined) return undefined;
    if (this.#was === "alone") this.#acknowledged = new Map([...this.#acknowledged, [id, given]]);
    else await this.#kept.acknowledge(id, given);
    this.#view = undefined;
    return { ...alert, acknowledged: given };
  }

  /** Makes one attempt to reach a receiver, from this instance. Undefined if there is no such receiver. */
  async test(receiver: string, by: string): Promise<{ delivered: boolean; error?: string } | undefined> {
    await this.#readPolicy();
    const startedAtMs = Date.now();
    const message: AlertMessage = {
      id: `test-${startedAtMs.toString(36)}`,
      subject: "test",
      kind: "threshold",
      condition: "test",
      state: "firing",
      severity: "warning",
      summary: `${by} sent this to find out whether alerts arrive. Nothing is wrong.`,
      startedAtMs,
      event: "test",
    };
    try {
      const sent = this.#receivers.test(receiver, message);
      if (sent === undefined) return undefined;
      await sent;
      const { type } = this.#policy.policy.receivers.find(({ id }) => id === receiver)!;
      // These services keep an incident open until it is resolved.
      if (type === "pagerduty" || type === "opsgenie")
        await this.#receivers.test(receiver, { ...message, state: "resolved", endedAtMs: Date.now() });
      return { delivered: true };
    } catch (error) {
      return { delivered: false, error: (error as Error).message };
    }
  }

  /** Takes over as leader: loads firing alerts and undelivered messages. Stores what was found while alone. */
  async #takeOver(nowMs: number): Promise<void> {
    this.#outdated = false;
    const mine = this.#book.open;
    const open = await this.#kept.readOpen();
    // Gives detectors their full quiet time to find the problem again.
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
      ({ told, muted, id, endedAtMs = nowMs }) =>
        !told && !muted && !mineIds.has(id) && nowMs - endedAtMs < NEWS_FOR_MS,
    );
    this.#acknowledged = await this.#kept.readAcknowledgements();
    for (const alert of untold) this.#tell(alert);
  }

  /** False if another instance has stored it already. */
  async #keepOpen(alert: KeptAlert, leadership: Leadership): Promise<boolean> {
    if (leadership === "alone" || (await this.#kept.saveOpen(alert))) return true;
    this.#book.drop(alert.subject);
    this.#outdated = true;
    return false;
  }

  #announce(alert: KeptAlert, more: Pick<AlertMessage, "event"> = {}): void {
    const { id, kind, rule, severity, summary } = alert;
    const fields = { alert: id, kind, ...(rule !== undefined && { rule }), severity, summary };
    if (alert.state === "firing") this.#options.log.warn("an alert fires", fields);
    else this.#options.log.info("an alert is over", fields);
    if (!alert.muted && !(alert.state === "resolved" && alert.told)) this.#tell(alert, more);
  }

  #tell(alert: KeptAlert, more: Pick<AlertMessage, "event"> = {}): void {
    const to = new Set(receiversFor(this.#policy.policy, alert, this.#tagsOf).keys());
    const message: AlertMessage = { ...alert, ...more };
    void Promise.all([this.#webhooks.tell(message), this.#receivers.tell(message, to)])
      .then((all) => all.every((isDone) => isDone))
      // If this was closed before delivery, the next leader sends it.
      .then((isDone) => (isDone ? this.#markTold(alert) : undefined))
      // If the shared state is unreachable, the next leader sends it again.
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
    await this.#keepStates(WEBHOOK_STATES, this.#webhooks.states);
    await this.#keepStates(RECEIVER_STATES, this.#receivers.states);
  }

  async #keepStates(name: string, states: readonly unknown[]): Promise<void> {
    const { shared } = this.#options;
    const was = await shared.read(name);
    const now = JSON.stringify(states);
    if (was !== now) await shared.swap(name, { was, now, keepMs: STATES_KEEP_MS });
  }

  async read(): Promise<AlertsView> {
    const nowMs = Date.now();
    if (this.#view === undefined || nowMs - this.#view.atMs >= VIEW_FOR_MS) {
      this.#view = { atMs: nowMs, stored: this.#readStored() };
    }
    const stored = await this.#view.stored;
    await this.#readPolicy();
    const acknowledged = stored.isRead ? stored.acknowledged : this.#acknowledged;
    const byId = new Map<string, KeptAlert>();
    // Later entries win: ended overrides open, and this instance's state is newer than what it stored.
    for (const alert of [...stored.open, ...this.#book.open, ...stored.kept, ...this.#endedAlone])
      byId.set(alert.id, alert);
    const alerts = [...byId.values()]
      .map((alert) => {
        const untilMs = alert.state === "firing" ? this.#silencedUntil(alert, nowMs) : undefined;
        const by = acknowledged.get(alert.id);
        return {
          ...shownAlert(alert),
          ...(by !== undefined && { acknowledged: by }),
          ...(untilMs !== undefined && { silencedUntilMs: untilMs }),
        };
      })
      .sort(firingThenNewest);
    return {
      atMs: nowMs,
      scope: stored.isRead ? "fleet" : "instance",
      alerts,
      webhooks: this.#webhooks.states.map((state, i) => {
        const kept = stored.webhooks[i];
        return isSilent(state) && kept?.url === state.url ? kept : state;
      }),
      receivers: this.#receivers.states.map((state) => {
        const kept = stored.receivers.find(({ id, type }) => id === state.id && type === state.type);
        return isSilent(state) ? (kept ?? state) : state;
      }),
    };
  }

  /** Falls back to this instance's own knowledge if the shared state is unreachable. */
  async #readStored(): Promise<Stored> {
    try {
      const [open, kept, acknowledged, webhooks, receivers] = await Promise.all([
        this.#kept.readOpen(),
        this.#kept.readKept(),
        this.#kept.readAcknowledgements(),
        this.#options.shared.read(WEBHOOK_STATES),
        this.#options.shared.read(RECEIVER_STATES),
      ]);
      return {
        ...{ isRead: true, open, kept, acknowledged },
        webhooks: parseSharedText<WebhookState[]>(webhooks) ?? [],
        receivers: parseSharedText<ReceiverState[]>(receivers) ?? [],
      };
    } catch {
      return { isRead: false, open: [], kept: [], acknowledged: new Map(), webhooks: [], receivers: [] };
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#round;
    this.#webhooks.close();
    this.#receivers.close();
    await this.#election.resign();
  }
}

interface Stored {
  readonly isRead: boolean;
  readonly open: readonly KeptAlert[];
  readonly kept: readonly KeptAlert[];
  readonly acknowledged: ReadonlyMap<string, Acknowledgement>;
  readonly webhooks: readonly WebhookState[];
  readonly receivers: readonly ReceiverState[];
}

function shownAlert(kept: KeptAlert): AlertView {
  const { subject: _, lastSeenMs: _1, told: _2, muted: _3, sent: _4, reminded: _5, ...alert } = kept;
  return alert;
}

function firingThenNewest(a: AlertView, b: AlertView): number {
  if (a.state !== b.state) return a.state === "firing" ? -1 : 1;
  return b.startedAtMs - a.startedAtMs;
}

/** An instance that has sent nothing shows the leader's stored state. */
function isSilent({ lastSentAtMs, lastError }: Pick<WebhookState, "lastSentAtMs" | "lastError">): boolean {
  return lastSentAtMs === undefined && lastError === undefined;
}
