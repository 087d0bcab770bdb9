/** The screen printed at startup: addresses, token, rules, and a sample request to repeat until it is refused. Pure. */
import type { CountingRule, Rule } from "sluice";
import { isCounting } from "sluice/internal";
import { setOwn } from "../own-fields.js";
import { printableLines } from "../printable.js";

interface StartScreen {
  readonly version: string;
  readonly http: string;
  readonly grpc: string;
  readonly proxy: string | undefined;
  /** Where the proxy forwards requests to. */
  readonly upstream: string | undefined;
  readonly adminTokenFile: string | undefined;
  /** The token itself, if it may be shown. */
  readonly adminToken: string | undefined;
  readonly store: string;
  readonly rulesSource: string;
  readonly rulesVersion: number;
  readonly rules: readonly Rule[];
  readonly workers: number;
  readonly apiToken: boolean;
}

const MOST_RULES_SHOWN = 12;

export function startScreen(screen: StartScreen): string {
  const { rules } = screen;
  const lines = [
    `Sluice ${screen.version}`,
    "",
    `  HTTP       ${screen.http}   (try it: ${screen.http}/docs, read: ${screen.http}/docs/guide)`,
    `  dashboard  ${screen.http}/   (sign in with the admin token)`,
    `  gRPC       ${screen.grpc}   (Envoy's rate limit service)`,
    ...(screen.proxy === undefined ? [] : [`  proxy      ${screen.proxy} -> ${screen.upstream}`]),
    `  admin      ${tokenText(screen)}`,
    `  store      ${screen.store}${screen.workers > 1 ? `, shared by ${screen.workers} workers` : ""}`,
    "",
    `Rules in force (version ${screen.rulesVersion}, ${screen.rulesSource})`,
    ...(rules.length === 0 ? ["  none: every request passes"] : ruleLines(rules)),
    "",
    invitation(rules),
    `  ${curlLine(screen)}`,
  ];
  return `${printableLines(lines.join("\n"))}\n`;
}

function tokenText({ adminTokenFile, adminToken }: StartScreen): string {
  if (adminTokenFile === undefined) return "token as set";
  return adminToken === undefined ? `token in ${adminTokenFile}` : `token ${adminToken}   (kept in ${adminTokenFile})`;
}

/** Repeating a request makes sense only if a rule will refuse it soon. */
function invitation(rules: readonly Rule[]): string {
  const refuser = tightestOf(rules);
  if (refuser === undefined) return "Ask it (nothing is refused by these rules):";
  return refuser.limit <= 100 ? "Repeat this until it is refused:" : `Ask it (refused after ${refuser.limit} in time):`;
}

function ruleLines(rules: readonly Rule[]): string[] {
  const shown = rules.slice(0, MOST_RULES_SHOWN);
  const width = Math.max(...shown.map(({ id }) => id.length));
  const lines = shown.map((rule) => `  ${rule.id.padEnd(width)}  ${describeRule(rule)}`);
  if (rules.length > shown.length) lines.push(`  … and ${rules.length - shown.length} more (sluice rules list)`);
  return lines;
}

/** `rolling-window, 5 in 10s, by user`. */
function describeRule(rule: Rule): string {
  const span = "window" in rule && rule.window !== undefined ? ` in ${rule.window}` : "";
  const numbers = isCounting(rule) ? countOf(rule) + span : [rule.signal].flat().join(" and ");
  const by = rule.key.length === 0 ? "all together" : `by ${rule.key.join(", ")}`;
  const mode = rule.mode === undefined || rule.mode === "enforce" ? "" : ` (${rule.mode})`;
  return `${rule.algorithm}, ${numbers}, ${by}${mode}`;
}

function countOf({ algorithm, limit }: CountingRule): string {
  return algorithm === "concurrency" ? `${limit} at once` : String(limit);
}

function curlLine({ http, rules, apiToken }: StartScreen): string {
  const body = JSON.stringify({ attributes: sampleAttributes(rules) });
  const token = apiToken ? `-H "authorization: Bearer $SLUICE_API_TOKEN" ` : "";
  return `curl -s ${http}/v1/check -H 'content-type: application/json' ${token}-d '${body.replaceAll("'", "'\\''")}'`;
}

/** Attributes that match the tightest simple rule. */
function sampleAttributes(rules: readonly Rule[]): Record<string, string | number | boolean> {
  const rule = tightestOf(rules);
  const sample: Record<string, string | number | boolean> = {};
  for (const name of rule?.key ?? ["user"]) setOwn(sample, name, name === "ip" ? "192.0.2.7" : "42");
  for (const [name, wanted] of Object.entries(rule?.match ?? {})) {
    const value = Array.isArray(wanted) ? wanted[0] : wanted;
    const met = typeof value === "string" ? value.replaceAll(/\*+/g, "x").replace(/\/\d{1,3}$/, "") : value;
    setOwn(sample, name, met);
  }
  return sample;
}

function tightestOf(rules: readonly Rule[]): CountingRule | undefined {
  const enforced = rules
    .filter(isCounting)
    .filter(({ mode, algorithm }) => (mode ?? "enforce") === "enforce" && algorithm !== "concurrency");
  return enforced.sort((a, b) => a.limit - b.limit)[0];
}
