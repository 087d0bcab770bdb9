/** What axe finds wrong with a page: all of it, or what is serious. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

export async function seriousFindings(page: Page): Promise<string[]> {
  return spell((await violationsOf(page)).filter(({ impact }) => impact === "serious" || impact === "critical"));
}

/** Of every impact, and of best practices too. */
export async function allFindings(page: Page): Promise<string[]> {
  return spell(await violationsOf(page));
}

async function violationsOf(page: Page): Promise<Finding[]> {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    violations: Finding[];
  };
  return violations;
}

function spell(violations: readonly Finding[]): string[] {
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target.join(" ")}: ${failureSummary}`),
  );
}
