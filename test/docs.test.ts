/**
 * Holds the documentation to the code: the table of errors, the links, the figures that a model can repeat, and the snippets of
 * docs/library.md, docs/errors.md and docs/from-other-limiters.md, which are run in plain Node against the built package.
 */
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorKinds as allErrorKinds, serviceErrors } from "../packages/server/src/errors.js";
import { models } from "../packages/sluice/src/algorithms/models.js";
import { errorKinds } from "../packages/sluice/src/errors.js";
import { compilePolicy } from "../packages/sluice/src/rules/compile-policy.js";
import { whyMissing } from "../scripts/system-components.mjs";
import { withCodes } from "../scripts/write-errors-page.mjs";
import { type RedisServer, startRedis } from "./harness/redis-server.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (page: string): string => readFileSync(join(root, page), "utf8");

const pages = [
  ...["README.md", "CONTRIBUTING.md"].filter((page) => existsSync(join(root, page))),
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file.replaceAll("\\", "/")}`),
];

/** Fenced code holds brackets that are no links, and "#" that are no headings. */
const withoutCode = (text: string): string => text.replace(/^```[\s\S]*?^```/gm, "").replace(/`[^`\n]*`/g, "");

function linksOf(text: string): string[] {
  return Array.from(withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g), ([, target]) => target!).filter(
    (target) => !/^[a-z]+:/.test(target),
  );
}

/** Headings as GitHub names them in links. */
function anchorsOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, "");
  return Array.from(prose.matchAll(/^#+ (.+)$/gm), ([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test.each(pages)("%s: every relative link points to a file that exists, and to a heading that it has", (page) => {
  const broken = linksOf(read(page)).filter((link) => {
    const [path, anchor] = link.split("#");
    const target = path === "" ? page : join(dirname(page), decodeURIComponent(path!));
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && target.endsWith(".md") && !anchorsOf(read(target)).includes(anchor);
  });
  expect(broken).toEqual([]);
});

test("docs/README.md names every page and every decision", () => {
  const index = read("docs/README.md");
  const others = pages.filter((page) => page.startsWith("docs/") && page !== "docs/README.md");
  expect(others.filter((page) => !index.includes(page.slice("docs/".length)))).toEqual([]);
});

test("every decision has a number of its own, in its file's name, its title and the index", () => {
  const numbers = pages
    .filter((page) => page.startsWith("docs/decisions/"))
    .map((page) => ({ page, number: Number(/\/(\d{4})-/.exec(page)?.[1]) }))
    .sort((a, b) => a.number - b.number);
  expect(numbers.map(({ number }) => number)).toEqual(numbers.map((_, at) => at + 1));
  const index = read("docs/README.md");
  for (const { page, number } of numbers) {
    expect(read(page), page).toMatch(new RegExp(`^# ${number}\\. `));
    expect(index, page).toMatch(new RegExp(`^ *${number}\\. \\[.*\\]\\(${page.slice("docs/".length)}\\)$`, "m"));
  }
});

test("docs/errors.md holds every code of the library and the service, as scripts/write-errors-page.mjs writes them", () => {
  const page = read("docs/errors.md");
  expect(page).toBe(withCodes(page, { library: errorKinds, ...serviceErrors }));
  const headings = Array.from(page.matchAll(/^### ([a-z-]+)$/gm), ([, code]) => code);
  expect(headings.sort()).toEqual(Object.keys(allErrorKinds).sort());
});

const MOST_COLUMNS = 120;
/** Markdown cannot wrap a row. Link targets do not count: nobody reads them in a row. */
const MOST_COLUMNS_OF_A_ROW = 240;

test.each(pages)("%s: lines have at most 120 columns, rows of tables 240", (page) => {
  const tooLong = read(page)
    .split("\n")
    .map((line, i) => ({ place: `line ${i + 1}`, line }))
    .filter(({ line }) => {
      if (!line.startsWith("|")) return line.length > MOST_COLUMNS;
      return line.replaceAll(/\]\([^)]*\)/g, "]").length > MOST_COLUMNS_OF_A_ROW;
    })
    .map(({ place, line }) => `${place}: ${line.length}`);
  expect(tooLong).toEqual([]);
});

test("every file that docs/glossary.md names exists, and no word has two lines", () => {
  const rows = Array.from(read("docs/glossary.md").matchAll(/^\| ([^|]+) \| [^|]+ \| `([^`]+)` \|$/gm));
  expect(rows.length).toBeGreaterThan(50);
  expect(rows.map(([, , file]) => file!).filter((file) => !existsSync(join(root, file)))).toEqual([]);
  const words = rows.map(([, word]) => word!);
  expect(words.filter((word, i) => words.indexOf(word) !== i)).toEqual([]);
});

test("docs/algorithms.md tells how many each algorithm admits in the worst window of its model", () => {
  const numbers = { limit: 100, window: "1s" } as const;
  const measured = {
    "rolling-window": worstWindow({ algorithm: "rolling-window", ...numbers }),
    "sliding-counter": worstWindow({ algorithm: "sliding-counter", ...numbers }),
    "fixed-window": worstWindow({ algorithm: "fixed-window", ...numbers }),
    "token-bucket": worstWindow({ algorithm: "token-bucket", ...numbers }),
    "gcra, burst 10": worstWindow({ algorithm: "gcra", burst: 10, ...numbers }),
  };
  const rows = read("docs/algorithms.md").matchAll(/^\| ([a-z-]+(?:, burst 10)?) \| (\d+) of 100 \|/gm);
  expect(Object.fromEntries(Array.from(rows, ([, name, worst]) => [name, Number(worst)]))).toEqual(measured);
});

/** A silent key, a burst late in an epoch second, then as much as there is to get: the most admitted in any 1000 ms. */
function worstWindow(numbers: Parameters<typeof compilePolicy>[0]): number {
  const policy = compilePolicy(numbers);
  const model = models[policy.stored];
  let worst = 0;
  for (let phaseMs = 980; phaseMs < 1_000; phaseMs++) {
    const state = model.fresh();
    const admitted: number[] = [];
    const startMs = 1_795_000_000_000 + phaseMs;
    for (let nowMs = startMs; nowMs < startMs + 3_000; nowMs++) {
      for (;;) {
        const verdict = model.look(state, policy, 1, nowMs);
        if (!verdict.allowed) break;
        model.charge(state, policy, { cost: 1, nowMs, requestId: `${admitted.length}` }, verdict);
        admitted.push(nowMs);
      }
    }
    let first = 0;
    for (const [last, atMs] of admitted.entries()) {
      while (atMs - admitted[first]! >= 1_000) first++;
      worst = Math.max(worst, last - first + 1);
    }
  }
  return worst;
}

interface Snippet {
  readonly name: string;
  readonly code: string;
  readonly type: "module" | "commonjs";
  /** What the comments behind `console.log` say. */
  readonly prints: readonly string[];
}

const snippetPages = ["docs/library.md", "docs/errors.md", "docs/from-other-limiters.md"];

const snippets = Array.from(
  snippetPages
    .map(read)
    .join("\n")
    .matchAll(/^#+ (.+)$|^```(c?js)\n([\s\S]*?)^```/gm),
).reduce<{
  section: string;
  found: Snippet[];
}>(
  ({ section, found }, [, heading, language, code]) => {
    if (heading !== undefined) return { section: heading, found };
    const prints = Array.from(code!.matchAll(/console\.log\(.*\)[;,)]* \/\/ (.+)$/gm), ([, told]) => told!);
    const type = language === "cjs" ? ("commonjs" as const) : ("module" as const);
    return { section, found: [...found, { name: `${found.length + 1}, ${section}`, code: code!, type, prints }] };
  },
  { section: "", found: [] },
).found;

describe.skipIf(whyMissing("redis"))(`snippets of ${snippetPages.join(", ")}`, () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await redis?.stop();
  });

  test("there are some, and each prints something", () => {
    expect(snippets.length).toBeGreaterThan(10);
    for (const { name, prints } of snippets) expect(prints.length, name).toBeGreaterThan(0);
  });

  test.each(snippets)("$name: prints what its comments say", async ({ code, type, prints }) => {
    await redis.cli("FLUSHALL");
    // A busy machine must not look like an outage: where a snippet leaves the deadline open, it gets a long one.
    const script = code
      .replaceAll("redis://127.0.0.1:6379", redis.url)
      .replace(/redisStore\(([^,)]+)\)/g, "redisStore($1, { deadlineMs: 5_000 })");
    const { stdout } = await promisify(execFile)(process.execPath, [`--input-type=${type}`, "-e", script], {
      cwd: root,
      timeout: 20_000,
      env: { ...process.env, NO_COLOR: "1" },
    });
    expect(stdout.trimEnd().split("\n")).toEqual(prints);
  });
});
