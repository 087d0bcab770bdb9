/**
 * The webhooks from the settings: each gets every alert that is not silenced, in its own lane. URLs may contain secrets, so only scheme and
 * host are shown.
 */
import { lookup } from "node:dns/promises";
import type { Webhook } from "../../settings/accepted-settings.js";
import type { AlertsView } from "../views/alerts.js";
import { DeliveryLane, type LaneOptions } from "./delivery-lane.js";
import type { Address, Resolve } from "./public-address.js";
import { type AlertMessage, messageBody, messageId, signatureHeaders } from "./webhook-message.js";
import { postOnce } from "./webhook-post.js";

export interface PostOptions {
  readonly allowPrivate: boolean;
  readonly resolve?: Resolve;
  /** Per attempt. Default 5 s. */
  readonly deadlineMs?: number;
}

export interface WebhooksOptions extends PostOptions, LaneOptions {
  readonly webhooks: readonly Webhook[];
  readonly secret?: string | undefined;
}

export type WebhookState = AlertsView["webhooks"][number];

const DEADLINE_MS = 5_000;

/** Omits user, path and query: Slack's path is the channel's secret. */
function shownUrl(url: URL): string {
  return url.pathname === "/" && url.search === "" ? url.origin : `${url.origin}/…`;
}

export class Webhooks {
  readonly #lanes: readonly { readonly shown: Pick<WebhookState, "url" | "format">; readonly lane: DeliveryLane }[];

  constructor(options: WebhooksOptions) {
    this.#lanes = options.webhooks.map(({ url, format }) => {
      const shown = { url: shownUrl(url), format };
      const target = { url, format, secret: options.secret };
      return { shown, lane: new DeliveryLane(shown.url, (alert) => postAlert(alert, target, options), options) };
    });
  }

  get states(): readonly WebhookState[] {
    return this.#lanes.map(({ shown, lane }) => ({ ...shown, ...lane.state }));
  }

  /** Resolves when every webhook has received it or was given up on; false if this was closed first. Never rejects. */
  async tell(alert: AlertMessage): Promise<boolean> {
    return (await Promise.all(this.#lanes.map(({ lane }) => lane.add(alert)))).every((isDone) => isDone);
  }

  /** Leaves undelivered messages to the next leader. */
  close(): void {
    for (const { lane } of this.#lanes) lane.close();
  }
}

/** One attempt, in our own format (signed if there is a secret) or in Slack's. */
export function postAlert(
  alert: AlertMessage,
  { url, format, secret }: Webhook & { readonly secret?: string | undefined },
  options: PostOptions,
): Promise<void> {
  const body = messageBody(alert, format);
  const signed =
    secret === undefined || format === "slack"
      ? {}
      : signatureHeaders(body, { secret, id: messageId(alert), atMs: Date.now() });
  return postJson({ url, body, headers: signed }, options);
}

export function postJson(
  message: { readonly url: URL; readonly body: string; readonly headers: Readonly<Record<string, string>> },
  { allowPrivate, resolve = resolveByDns, deadlineMs = DEADLINE_MS }: PostOptions,
): Promise<void> {
  const headers = { "content-type": "application/json", "user-agent": "sluice", ...message.headers };
  return postOnce({ ...message, headers, allowPrivate, resolve, deadlineMs });
}

async function resolveByDns(hostname: string): Promise<Address[]> {
  const addresses = await lookup(hostname, { all: true });
  return addresses.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}
