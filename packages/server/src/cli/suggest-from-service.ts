/** `sluice suggest --rule per-user`: suggests a limit from the history of a running service, if there is no log. */
import type { Rule } from "sluice";
import { stringify } from "yaml";
import { type HistorySuggestion, suggestFromHistory } from "../analysis/suggest-from-history.js";
import type { TopKeysView } from "../monitoring/views/keys.js";
import { CommandFailure } from "./command-failure.js";
import { colours, figure, printJson, printLine, printTable } from "./print.js";
import { type AdminOptions, askAdmin } from "./rules-client.js";

const MOST_KEYS = 500;

export interface HistoryOptions extends AdminOptions {
  readonly rule?: string;
  readonly history: "hour" | "day";
  readonly headroom: number;
}

export async function suggestFromService(id: string, options: HistoryOptions): Promise<void> {
  const rule = await askAdmin<Rule>(`/rules/${encodeURIComponent(id)}`, options);
  const query = { rule: id, window: options.history, by: "traffic", limit: String(MOST_KEYS) };
  const { keys } = await askAdmin<TopKeysView>("/keys/top", options, { query });
  if (!("limit" in rule) || typeof rule.limit !== "number") {
    throw new CommandFailure(`${id}: expected a rule with a limit of its own`);
  }
  const window = "window" in rule ? rule.window : undefined;
  const found = suggestFromHistory({ rule: { id, limit: rule.limit, window }, keys, headroom: options.headroom });
  if (options.json) printJson(found);
  else show(found, options);
}

function show(found: HistorySuggestion, { headroom, history }: HistoryOptions): void {
  const { rule, limit, window, keys, keysRefused, p50, p99, max, limits, candidate } = found;
  if (keys === 0) {
    printLine("nothing to suggest from: the service remembers no key of this rule yet");
    return;
  }
  printLine(`${rule}: limit ${figure(limit)}${window === undefined ? "" : ` per ${window}`}, last ${history}`);
  printTable(
    ["busiest keys", "refused", "p50", "p99", "most in use"],
    [[keys, keysRefused, p50, p99, max].map(figure)],
  );
  printLine("");
  printTable(
    ["limit", "from", "keys it would touch"],
    limits.map((one) => [figure(one.limit), one.from, `${figure(one.keysTouched)} of ${figure(keys)}`]),
  );
  printLine("");
  printLine(`Each limit is ${headroom} times what the busiest keys had in use; the service remembers no others.`);
  if (candidate === undefined) {
    printLine(
      colours.yellow(
        "Keys were refused: how much they wanted is not known here. A log or a recording (--record) tells.",
      ),
    );
  } else printLine(`To try it beside the limit in force:\n\n${stringify({ candidate }).trimEnd()}`);
}
