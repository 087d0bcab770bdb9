/** Rule matching and key building on their own: checks of cost 0 decide nothing, so what differs between books is the matching. */
import { pathToFileURL } from "node:url";
import { createLimiter } from "sluice";

const COUNT = 100_000;

export function matchingSection() {
  return {
    rules: [1, 10, 1_000, 10_000].map((rules) => ({ rules, nanoseconds: nanosecondsOf(rules) })),
    overrides: [10, 1_000, 100_000].map((overrides) => ({ overrides, nanoseconds: nanosecondsOf(1, overrides) })),
  };
}

export function printMatching({ rules: rows, overrides }) {
  const [base] = rows;
  console.log("\nMatching: one rule of the book applies, found among");
  for (const { rules, nanoseconds } of rows) {
    const ratio = (nanoseconds / base.nanoseconds).toFixed(2);
    console.log(
      `  ${String(rules).padStart(6)} rules  ${ratio.padStart(6)}  ${Math.round(nanoseconds)} ns with a look`,
    );
  }
  const [few] = overrides;
  console.log("Overrides: one of the rule's list applies, found among");
  for (const { overrides: count, nanoseconds } of overrides) {
    const ratio = (nanoseconds / few.nanoseconds).toFixed(2);
    console.log(
      `  ${String(count).padStart(6)}        ${ratio.padStart(6)}  ${Math.round(nanoseconds)} ns with a look`,
    );
  }
}

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const globRules = (patterns) =>
  patterns.map((path, i) => ({
    id: `r-${i}`,
    match: { path },
    key: [],
    algorithm: "token-bucket",
    limit: 100,
    window: "1m",
  }));

/** Values that a client may choose, against globs that an editor may write. */
const hostile = [
  {
    what: "1 000 globs /v1/*/itemsN/*, a path of 15 KB",
    globs: times(1_000, (i) => `/v1/*/items${i}/*`),
    value: `/v1/${"x".repeat(15_000)}/items1`,
  },
  {
    what: "20 000 globs /v1/*/itemsN/*, a path of 60 KB",
    globs: times(20_000, (i) => `/v1/*/items${i}/*`),
    value: `/v1/${"x".repeat(60_000)}`,
  },
  {
    what: "20 000 globs **N*x, a value that meets each",
    globs: times(20_000, (i) => `**${i}*x`),
    value: times(12_000, String).join("."),
  },
  {
    what: "the worst single glob, 60 KB",
    globs: [`${"**a*".repeat(63)}b`],
    value: "a".repeat(60_000),
  },
];

export async function hostileSection() {
  const rows = [];
  for (const { what, globs, value } of hostile) {
    const limiter = createLimiter({ rules: globRules(globs) });
    let milliseconds = Number.POSITIVE_INFINITY;
    let outcome = "matched";
    for (let round = 0; round < 10; round++) {
      const before = process.cpuUsage();
      await limiter.check({ path: value }, { cost: 0 }).catch(({ code }) => {
        outcome = `refused: ${code}`;
      });
      const { user, system } = process.cpuUsage(before);
      milliseconds = Math.min(milliseconds, (user + system) / 1_000);
    }
    rows.push({ what, milliseconds, outcome });
    void limiter.close();
  }
  return rows;
}

export function printHostile(rows) {
  console.log("\nMatching hostile values: the bound is 100 000 steps");
  for (const { what, milliseconds, outcome } of rows) {
    console.log(`  ${what.padEnd(52)} ${milliseconds.toFixed(2).padStart(8)} ms  ${outcome}`);
  }
}

/** The best of five: what disturbs a run only ever makes it slower. */
function nanosecondsOf(rules, overrides = 0) {
  const limiter = createLimiter({
    rules: Array.from({ length: rules }, (_, i) => ({
      id: `r-${i}`,
      match: { tenant: `tenant-${i}` },
      key: ["user"],
      algorithm: "token-bucket",
      limit: 100,
      window: "1m",
      overrides: Array.from({ length: overrides }, (_, n) => ({ match: { user: `user-${n}` }, limit: n + 1 })),
    })),
  });
  const request = { tenant: `tenant-${rules >> 1}`, user: "user-7", path: "/v1/orders", method: "GET" };
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const before = process.cpuUsage();
    for (let i = 0; i < COUNT; i++) limiter.check(request, { cost: 0 });
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, ((user + system) * 1_000) / COUNT);
  }
  void limiter.close();
  return best;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  printMatching(matchingSection());
  printHostile(await hostileSection());
}
