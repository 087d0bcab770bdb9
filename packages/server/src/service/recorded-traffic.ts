/** The traffic on which the console tries drafts: this instance's recording, and for suggestions the history of its busiest keys. */
import type { Rule } from "sluice";
import { TimeSlice } from "sluice/internal";
import type { Traffic, TrafficSpan } from "../administration/try-routes.js";
import type { TrafficWorker } from "../analysis/traffic-worker.js";
import type { SuggestionsView } from "../analysis/try-on-traffic.js";
import type { Configuration } from "../configuration/configuration.js";
import { writeDocument } from "../configuration/document-text.js";
import { ServiceError } from "../errors.js";
import type { Instance } from "../instance/instance.js";
import type { Figures } from "../monitoring/figures.js";

const spansMs: Readonly<Record<TrafficSpan, number>> = { "10m": 600_000, "1h": 3_600_000, "24h": 86_400_000 };
/** A few CPU seconds. The response reports what it covers. */
const BOUNDS = { mostLines: 500_000, mostMs: 8_000 };
const HEADROOM = 1.2;
const MOST_KEYS = 500;

interface TrafficParts {
  readonly recording: Instance["recording"];
  readonly configuration: Configuration;
  readonly figures: Figures | undefined;
}

export function recordedTraffic({ recording, configuration, figures }: TrafficParts): Traffic {
  let worker: TrafficWorker | undefined;
  // Loaded on the first trial: not needed at startup.
  const openWorker = async (): Promise<TrafficWorker> => {
    const { TrafficWorker } = await import("../analysis/traffic-worker.js");
    worker ??= new TrafficWorker();
    return worker;
  };
  const source = async (span: TrafficSpan) => {
    if (recording === undefined) throw new ServiceError("no-recording", "this instance runs without --record");
    // Include everything decided so far.
    await recording.flush();
    return { folder: recording.folder, hash: recording.hash, fromMs: Date.now() - spansMs[span], ...BOUNDS };
  };
  return {
    async tryDraft(draft, span) {
      const from = await source(span);
      // Time-sliced: serialising ten thousand rules in one go would delay checks.
      const document = await writeDocument(configuration.current.rules, new TimeSlice());
      return await (await openWorker()).tryOnTraffic({ ...from, document, draft });
    },
    async suggest(rule, span) {
      if (recording === undefined) return await fromHistory(rule, figures, span);
      return await (await openWorker()).suggest({ ...(await source(span)), rule, headroom: HEADROOM });
    },
  };
}

async function fromHistory(rule: Rule, figures: Figures | undefined, span: TrafficSpan): Promise<SuggestionsView> {
  const limit = "limit" in rule && typeof rule.limit === "number" ? rule.limit : undefined;
  if (figures === undefined) throw new ServiceError("no-recording", "this instance neither records nor counts traffic");
  const window = span === "24h" ? "day" : "hour";
  const { keys } =
    limit === undefined
      ? { keys: [] }
      : await figures.readTopKeys({ window, by: "traffic", rule: rule.id, search: undefined, limit: MOST_KEYS });
  const { suggestFromHistory } = await import("../analysis/suggest-from-history.js");
  const found = suggestFromHistory({ rule: { id: rule.id, limit: limit ?? 1 }, keys, headroom: HEADROOM });
  // A key that was refused wanted more than the history shows.
  const limits = found.keysRefused > 0 ? [] : found.limits;
  const total = keys.reduce((sum, { count }) => sum + count, 0);
  const { p50, max } = found;
  return { rule: rule.id, source: "history", total, keys: found.keys, p50, max, headroom: HEADROOM, limits };
}
