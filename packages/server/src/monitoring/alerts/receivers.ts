/**
 * The receivers of the alert policy, each with its own lane. They follow policy changes: a changed receiver gets a new lane, which sends
 * what the old one had not delivered.
 */

import type { PolicyInForce } from "../../configuration/alert-policies.js";
import type { AlertReceiver } from "../../configuration/alert-policy.js";
import { ownField } from "../../own-fields.js";
import type { AlertsView } from "../views/alerts.js";
import { DeliveryLane, type LaneOptions } from "./delivery-lane.js";
import { type SmtpOptions, sendMail } from "./mail.js";
import { mailOf, opsgeniePost, pagerDutyPost } from "./receiver-formats.js";
import type { AlertMessage } from "./webhook-message.js";
import { PostFailed } from "./webhook-post.js";
import { type PostOptions, postAlert, postJson } from "./webhooks.js";

export interface ReceiversOptions extends PostOptions, LaneOptions {
  readonly smtp?: SmtpOptions | undefined;
  /** The console's URL as browsers reach it; messages link to it. */
  readonly consoleUrl?: string | undefined;
}

export type ReceiverState = AlertsView["receivers"][number];

type Secrets = Readonly<Record<string, string>>;

interface Held {
  readonly receiver: AlertReceiver;
  readonly secrets: Secrets;
  /** Serialised, to detect what a policy change affects. */
  readonly form: string;
  readonly lane: DeliveryLane;
}

export class Receivers {
  readonly #options: ReceiversOptions;
  readonly #held = new Map<string, Held>();
  #version = -1;

  constructor(options: ReceiversOptions) {
    this.#options = options;
  }

  get states(): readonly ReceiverState[] {
    return [...this.#held.values()].map(({ receiver: { id, type }, lane }) => ({ id, type, ...lane.state }));
  }

  follow({ version, policy, secrets }: Pick<PolicyInForce, "version" | "policy" | "secrets">): void {
    if (version === this.#version) return;
    this.#version = version;
    const wanted = new Set(policy.receivers.map(({ id }) => id));
    for (const [id, { lane }] of [...this.#held]) {
      if (wanted.has(id)) continue;
      lane.close();
      this.#held.delete(id);
    }
    for (const receiver of policy.receivers) {
      const own = ownField(secrets, receiver.id) ?? {};
      const form = JSON.stringify([receiver, own]);
      const before = this.#held.get(receiver.id);
      if (before?.form === form) continue;
      before?.lane.close();
      const lane = new DeliveryLane(receiver.id, (alert) => this.#send(alert, receiver, own), this.#options);
      this.#held.set(receiver.id, { receiver, secrets: own, form, lane });
    }
  }

  /** Resolves when all have received it or were given up on; false if one was closed first. Never rejects. */
  async tell(alert: AlertMessage, to: ReadonlySet<string>): Promise<boolean> {
    const lanes = [...this.#held.values()].filter(({ receiver }) => to.has(receiver.id));
    return (await Promise.all(lanes.map(({ lane }) => lane.add(alert)))).every((isDone) => isDone);
  }

  /** One attempt, outside of the queue; rejects with the failure. Undefined if there is no such receiver. */
  test(id: string, alert: AlertMessage): Promise<void> | undefined {
    const held = this.#held.get(id);
    return held && this.#send(alert, held.receiver, held.secrets);
  }

  close(): void {
    for (const { lane } of this.#held.values()) lane.close();
  }

  async #send(alert: AlertMessage, receiver: AlertReceiver, secrets: Secrets): Promise<void> {
    const { consoleUrl, smtp } = this.#options;
    const { type, url, to = [] } = receiver;
    const { key = "" } = secrets;
    if (type === "pagerduty") return postJson(pagerDutyPost(alert, { key, url, consoleUrl }), this.#options);
    if (type === "opsgenie") return postJson(opsgeniePost(alert, { key, url, consoleUrl }), this.#options);
    if (type === "email") {
      if (smtp === undefined) throw new PostFailed("no mail server is set: --smtp-url, --smtp-from", { retry: false });
      return await sendMail({ to, ...mailOf(alert, { consoleUrl }) }, smtp);
    }
    const format = type === "slack" ? "slack" : "json";
    return postAlert(alert, { url: new URL(secrets.url!), format, secret: secrets.secret }, this.#options);
  }
}
