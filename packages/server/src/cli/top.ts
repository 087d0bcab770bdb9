/**
 * `sluice top`: the live view of a running service, redrawn every second until q or Ctrl-C; a line per second when piped; once for scripts.
 * Waits for a service that goes away: the screen shows since when its figures are stale.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { TopKeysView } from "../monitoring/views/keys.js";
import type { LiveView } from "../monitoring/views/stats.js";
import { printable, printableJson } from "../printable.js";
import { readLiveViews } from "./live-stream.js";
import { colours, printJson, printLine } from "./print.js";
import { type AdminOptions, adminCommand, askAdmin } from "./rules-client.js";
import { drawTop, lineOf } from "./top-screen.js";

interface TopOptions extends AdminOptions {
  readonly once: boolean;
}

const KEYS_EVERY_MS = 5_000;
const KEPT_VIEWS = 120;
const RETRY_MS = 1_000;
const SCREEN = {
  enter: "\u001b[?1049h\u001b[?25l",
  leave: "\u001b[?25h\u001b[?1049l",
  home: "\u001b[H",
  clearLine: "\u001b[K",
  clearRest: "\u001b[J",
};

export function topCommand(): Command {
  return adminCommand("top")
    .description("the live view: rates, latency, busiest rules, top keys")
    .option("--once", "show one second and end, for scripts", false)
    .action(async (options: TopOptions) => {
      if (options.once) await showOnce(options);
      else if (process.stdout.isTTY && !options.json) await showScreen(options);
      else await showLines(options);
    });
}

const readKeys = (options: TopOptions): Promise<TopKeysView> =>
  askAdmin("/keys/top", options, { query: { limit: "50" } });

async function showOnce(options: TopOptions): Promise<void> {
  const ending = new AbortController();
  for await (const live of readLiveViews(options, ending.signal)) {
    const topKeys = await readKeys(options);
    if (options.json) printJson({ live, topKeys });
    else {
      const { columns = 100 } = process.stdout;
      const screen = { server: options.server, views: [live], topKeys, stale: undefined, columns, rows: 40 };
      for (const line of drawTop(screen, colours)) printLine(line);
    }
    ending.abort();
    return;
  }
}

async function showLines(options: TopOptions): Promise<void> {
  const ending = new AbortController();
  // The pipe's reader has closed it (`sluice top | head`).
  process.stdout.on("error", () => ending.abort());
  try {
    for await (const view of readLiveViews(options, ending.signal)) {
      printLine(options.json ? printableJson(view, 0) : printable(lineOf(view)));
    }
  } catch (error) {
    if (!ending.signal.aborted) throw error;
  }
}

async function showScreen(options: TopOptions): Promise<void> {
  const ending = new AbortController();
  const views: LiveView[] = [];
  let topKeys: TopKeysView | undefined;
  let stale: string | undefined;
  const draw = (): void => {
    const { columns, rows } = process.stdout;
    const lines = drawTop({ server: options.server, views, topKeys, stale, columns, rows }, colours).slice(0, rows - 1);
    const drawn = [...lines, colours.dim("q: quit")].map((line) => line + SCREEN.clearLine).join("\r\n");
    process.stdout.write(SCREEN.home + drawn + SCREEN.clearRest);
  };
  // Before taking over the screen: a wrong token or address is reported as by any command.
  topKeys = await readKeys(options);
  const keysTimer = setInterval(() => {
    readKeys(options).then(
      (view) => {
        topKeys = view;
      },
      () => undefined,
    );
  }, KEYS_EVERY_MS);
  const stopListening = onQuit(() => ending.abort());
  process.stdout.on("resize", draw);
  process.stdout.write(SCREEN.enter);
  try {
    draw();
    while (!ending.signal.aborted) {
      try {
        for await (const view of readLiveViews(options, ending.signal)) {
          stale = undefined;
          views.push(view);
          if (views.length > KEPT_VIEWS) views.shift();
          draw();
        }
        stale = "the service ended the stream; asking again";
      } catch (error) {
        stale = `${(error as Error).message}; asking again`;
      }
      if (!ending.signal.aborted) {
        draw();
        await sleep(RETRY_MS, undefined, { signal: ending.signal }).catch(() => undefined);
      }
    }
  } finally {
    clearInterval(keysTimer);
    stopListening();
    process.stdout.off("resize", draw);
    process.stdout.write(SCREEN.leave);
  }
}

/** q, Ctrl-C, or a signal. */
function onQuit(quit: () => void): () => void {
  const { stdin } = process;
  const pressed = (keys: Buffer): void => {
    if (keys.includes("q") || keys.includes("\u0003")) quit();
  };
  if (stdin.isTTY) stdin.setRawMode(true);
  stdin.on("data", pressed);
  process.once("SIGTERM", quit);
  process.once("SIGINT", quit);
  return () => {
    stdin.off("data", pressed);
    if (stdin.isTTY) stdin.setRawMode(false);
    stdin.pause();
  };
}
