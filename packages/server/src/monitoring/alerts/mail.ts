/**
 * Sends mail by SMTP. The server is a setting, so no address set through the API decides where this machine connects to (SSRF).
 * Passwords are never sent in clear text: with one, STARTTLS is required, except to a server on this machine. The mailer is loaded with the
 * first message.
 */
import { PostFailed } from "./webhook-post.js";

export interface SmtpOptions {
  /** `smtp://USER:PASSWORD@HOST:PORT`, or `smtps://…` for TLS from the first byte. */
  readonly url: URL;
  readonly from: string;
  /** Per attempt. Default 15 s. */
  readonly deadlineMs?: number;
  /** CA for the server's certificate, in addition to Node's. */
  readonly ca?: string;
}

interface Mail {
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly messageKey: string;
}

const DEADLINE_MS = 15_000;
const loopback = /^(localhost|127(\.\d+){3}|\[?::1\]?)$/;

export async function sendMail({ to, subject, text, messageKey }: Mail, options: SmtpOptions): Promise<void> {
  const { createTransport } = await import("nodemailer");
  const { url, from, deadlineMs = DEADLINE_MS, ca } = options;
  const secure = url.protocol === "smtps:";
  const user = decodeURIComponent(url.username);
  const transport = createTransport({
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (secure ? 465 : 587) : Number(url.port),
    secure,
    requireTLS: user !== "" && !secure && !loopback.test(url.hostname),
    ...(user !== "" && { auth: { user, pass: decodeURIComponent(url.password) } }),
    ...(ca !== undefined && { tls: { ca } }),
    connectionTimeout: deadlineMs,
    greetingTimeout: deadlineMs,
    socketTimeout: deadlineMs,
    // Texts contain rules and keys: none of them may read a file or fetch a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new PostFailed(`no answer within ${deadlineMs} ms`, { retry: true })), deadlineMs);
    timer.unref();
  });
  try {
    const headers = { "auto-submitted": "auto-generated", "x-sluice-alert": messageKey };
    const references = `<${messageKey}@sluice.invalid>`;
    await Promise.race([
      late,
      transport.sendMail({ from, to: [...to], subject, text, headers, references, inReplyTo: references }),
    ]);
  } catch (error) {
    throw error instanceof PostFailed ? error : failureOf(error);
  } finally {
    clearTimeout(timer);
    transport.close();
  }
}

/**
 * 5xx is final (RFC 5321, 4.2.1); a message that never reached the server is retried. Keeps the server's error text, without our password.
 */
function failureOf(error: unknown): PostFailed {
  const { responseCode, code, command } = error as { responseCode?: number; code?: string; command?: string };
  const isFinal = (responseCode !== undefined && responseCode >= 500) || code === "ETLS" || code === "EAUTH";
  const what = responseCode === undefined ? (code ?? "failed") : `answered ${responseCode}`;
  return new PostFailed(`SMTP ${what}${command === undefined ? "" : ` to ${command}`}`, { retry: !isFinal });
}
