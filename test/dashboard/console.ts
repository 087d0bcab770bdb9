/**
 * The dashboard in a real Chromium, for tests: one browser a file, one context a person. What a page complains of (an exception, a breach of the
 * content security policy) is collected, and fails the test that asks for it.
 */
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { components } from "../../scripts/system-components.mjs";
import {
  type Json,
  postJson,
  type RunningService,
  type StartOptions,
  startTestService,
} from "../service/running-service.js";

export const ADMIN = "the-admin-token-of-this-test";

/** Generous: a loaded machine is not a defect. */
const PATIENCE_MS = 60_000;

/** `args`: further flags of Chromium's command line. */
export async function startBrowser(args: readonly string[] = []): Promise<Browser> {
  return await chromium.launch({
    executablePath: components.chromium.find()!,
    // Tests run as root in containers, where Chromium's own sandbox cannot.
    args: ["--no-sandbox", "--disable-gpu", ...args],
    // Pages write numbers and dates in the browser's language: not in that of the developer's shell.
    env: { ...process.env, LC_ALL: "en_US.UTF-8" },
  });
}

export interface Person extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong in the page, beside calls that were refused. */
  readonly complaints: string[];
}

export interface PersonOptions {
  readonly at: string;
  /** Absent: not signed in. */
  readonly token?: string;
  readonly path?: string;
  readonly colorScheme?: "light" | "dark";
  readonly width?: number;
}

export async function open(browser: Browser, options: PersonOptions): Promise<Person> {
  const { at, token, path = "/", colorScheme = "light", width = 1280 } = options;
  const context = await browser.newContext({ baseURL: at, colorScheme, viewport: { width, height: 860 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const complaints: string[] = [];
  // Of every tab that the person opens.
  context.on("page", (tab) => {
    tab.on("pageerror", (error) => complaints.push(String(error)));
    tab.on("console", (message) => {
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
        complaints.push(message.text());
      }
    });
  });
  const page = await context.newPage();
  await page.goto(path);
  if (token !== undefined) await signIn(page, token);
  return { page, context, complaints, [Symbol.asyncDispose]: () => context.close() };
}

export interface OpenConsole {
  readonly browser: Browser;
  readonly service: RunningService;
  /** Signed in with the first token. */
  readonly person: Person;
  readonly page: Page;
  close(): Promise<void>;
}

interface ConsoleOptions extends Pick<PersonOptions, "path" | "width"> {
  readonly start?: StartOptions;
  /** Before anybody signs in. */
  readonly prepare: (at: string) => Promise<unknown>;
}

/** A service, a browser and one person who is signed in, for all tests of a file. */
export async function openConsole({ start, prepare, ...looks }: ConsoleOptions): Promise<OpenConsole> {
  const settings = { "admin-token": ADMIN, ...start?.settings };
  const [browser, service] = await Promise.all([startBrowser(), startTestService({ ...start, settings })]);
  const close = async (): Promise<void> => {
    await browser.close();
    await service.close();
  };
  try {
    await prepare(service.http);
    const person = await open(browser, { at: service.http, token: ADMIN, ...looks });
    return { browser, service, person, page: person.page, close };
  } catch (error) {
    await close();
    throw error;
  }
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page
    .getByRole("navigation", { name: "Pages" })
    .or(page.getByRole("button", { name: "Menu" }))
    .first()
    .waitFor();
}

/** The admin API with the first token, for what a test needs beside the browser. */
export async function admin(at: string, method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await fetch(`${at}/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${ADMIN}`,
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

export async function makeToken(at: string, name: string, role: "viewer" | "editor"): Promise<string> {
  return (await admin(at, "POST", "/tokens", { name, role })).token;
}

export async function check(at: string, attributes: Record<string, string>): Promise<Json> {
  return (await postJson(`${at}/v1/check`, { attributes })).body;
}

/** Sends the same request again and again until it is told to stop. */
export function startTraffic(at: string, attributes: Record<string, string>): { stop(): Promise<void> } {
  let isOn = true;
  const running = (async () => {
    while (isOn) {
      await Promise.all(Array.from({ length: 10 }, () => check(at, attributes)));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return {
    async stop() {
      isOn = false;
      await running;
    },
  };
}

/** The cells of a table's row, without its head. */
export function cellsOf(page: Page, section: string, row: string | RegExp): Promise<string[]> {
  return page
    .locator("section", { hasText: section })
    .first()
    .getByRole("row", { name: row })
    .first()
    .locator("td")
    .allInnerTexts();
}
