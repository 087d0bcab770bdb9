/** The pages' queries. Figures are polled every few seconds; rules, tokens and versions are refetched after each change. */
import { keepPreviousData, QueryClient, queryOptions } from "@tanstack/react-query";
import { boundsOf, isOver, type ShownTime, timeName, timeQuery } from "../time/time-address.js";
import { contact } from "./contact.js";
import { Problem, request } from "./request.js";
import type {
  AlertPolicyView,
  AlertsView,
  AuditFilter,
  AuditView,
  BlockedKeysView,
  KeyView,
  LoadView,
  OpenSessionView,
  RegionsView,
  RulesView,
  SessionView,
  SilenceView,
  SpendView,
  StatsView,
  StoreView,
  TokenView,
  TopKeysView,
  VersionDetailView,
  VersionsView,
} from "./shapes.js";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // A 4xx is final; a restarting service is polled until it is back.
      retry: (count, error) => error instanceof Problem && error.status === 0 && count < 3,
      retryDelay: 1_000,
      staleTime: 1_000,
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

const FIGURES_MS = 5_000;

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () =>
    request<SessionView>("/session").catch((error: unknown) => {
      if (!(error instanceof Problem) || error.status !== 401) throw error;
      // The session has just ended: the shell shows the sign-in page.
      if (queryClient.getQueryData<SessionView | null>(["session"])) contact.signedOut();
      return null;
    }),
  // An idle page makes no other call, so this poll also detects that the service is down.
  refetchInterval: FIGURES_MS,
});

export const rulesQuery = queryOptions({
  queryKey: ["rules"],
  queryFn: () => request<RulesView>("/rules"),
  refetchInterval: 15_000,
  // A version identifies its document, so thousands of rules need not be compared field by field after each poll.
  structuralSharing: (before, now) =>
    (before as RulesView | undefined)?.version === (now as RulesView).version ? before : now,
});

export const blockedKeysQuery = queryOptions({
  queryKey: ["blocked-keys"],
  queryFn: () => request<BlockedKeysView>("/keys/blocked"),
  refetchInterval: FIGURES_MS,
});

interface OfTime {
  readonly time: ShownTime;
  readonly rule?: string;
  /** Shifted into the past by this much, for comparisons. */
  readonly offsetMs?: number;
}

export const statsQuery = ({ time, rule, offsetMs = 0 }: OfTime) =>
  queryOptions({
    queryKey: ["stats", timeName(time), rule ?? "", offsetMs],
    queryFn: () => request<StatsView>("/stats", { query: { ...timeQuery(time, offsetMs), rule } }),
    refetchInterval: isOver(time) ? false : FIGURES_MS,
    placeholderData: keepPreviousData,
    // Skips comparing the counts of thousands of rules field by field after each poll.
    structuralSharing: false,
  });

export const loadQuery = ({ time, rule }: OfTime) =>
  queryOptions({
    queryKey: ["load", timeName(time), rule ?? ""],
    queryFn: () => request<LoadView>("/load", { query: { ...timeQuery(time), rule } }),
    refetchInterval: time.range === "live" ? 2_000 : FIGURES_MS,
    placeholderData: keepPreviousData,
  });

export const spendQuery = ({ time, rule }: OfTime) =>
  queryOptions({
    queryKey: ["spend", timeName(time), rule ?? ""],
    queryFn: () => request<SpendView>("/spend", { query: { ...timeQuery(time), rule } }),
    refetchInterval: isOver(time) ? false : FIGURES_MS,
    placeholderData: keepPreviousData,
  });

interface TopKeysAsked {
  readonly time: ShownTime;
  /** Shifted into the past by this much, for comparisons. */
  readonly offsetMs?: number;
  readonly by: "traffic" | "refusals" | "spend";
  readonly unit?: string;
  readonly rule?: string;
  readonly search?: string;
  readonly limit?: number;
  readonly group?: "client";
}

export function topKeysParameters({ time, offsetMs = 0, ...query }: TopKeysAsked): Record<string, string | number> {
  return { ...keysTime(time, offsetMs), ...query };
}

export const topKeysQuery = ({ time, offsetMs = 0, ...query }: TopKeysAsked) =>
  queryOptions({
    queryKey: ["top-keys", timeName(time), offsetMs, query],
    queryFn: () => request<TopKeysView>("/keys/top", { query: topKeysParameters({ time, offsetMs, ...query }) }),
    refetchInterval: isOver(time) ? false : FIGURES_MS,
    placeholderData: keepPreviousData,
  });

/** Key tables have no resolution of seconds: "live" means the last hour. */
function keysTime(time: ShownTime, offsetMs: number): Record<string, string | number> {
  return timeQuery(time.range === "live" ? { range: "1h" } : time, offsetMs);
}

export const keyHistoryQuery = (attributes: Readonly<Record<string, string>>, time: ShownTime) =>
  queryOptions({
    queryKey: ["key-history", attributes, timeName(time)],
    queryFn: () => {
      const { fromMs, toMs } = boundsOf(time.range === "live" ? { range: "1h" } : time);
      const body = { attributes, from: String(Math.round(fromMs)), to: String(Math.round(toMs)) };
      return request<KeyView>("/keys/history", { method: "POST", body });
    },
    refetchInterval: FIGURES_MS,
    placeholderData: keepPreviousData,
  });

export const alertsQuery = queryOptions({
  queryKey: ["alerts"],
  queryFn: () => request<AlertsView>("/alerts"),
  refetchInterval: FIGURES_MS,
});

export const silencesQuery = queryOptions({
  queryKey: ["silences"],
  queryFn: () => request<{ silences: readonly SilenceView[] }>("/alerts/silences"),
  refetchInterval: FIGURES_MS,
});

export const alertPolicyQuery = queryOptions({
  queryKey: ["alert-policy"],
  queryFn: () => request<AlertPolicyView>("/alerts/policy"),
});

export const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: () => request<{ sessions: readonly OpenSessionView[] }>("/sessions"),
  refetchInterval: FIGURES_MS,
});

export const regionsQuery = queryOptions({
  queryKey: ["regions"],
  queryFn: () => request<RegionsView>("/regions"),
  refetchInterval: FIGURES_MS,
});

export const storeQuery = queryOptions({
  queryKey: ["store"],
  queryFn: () => request<StoreView>("/store"),
  refetchInterval: FIGURES_MS,
});

export const versionsQuery = ({ before, rule }: { before?: number | undefined; rule?: string }) =>
  queryOptions({
    queryKey: ["versions", rule ?? "", before ?? 0],
    queryFn: () => request<VersionsView>("/versions", { query: { before, rule, limit: 25 } }),
    placeholderData: keepPreviousData,
  });

export const versionQuery = (version: number) =>
  queryOptions({
    queryKey: ["version", version],
    queryFn: () => request<VersionDetailView>(`/versions/${version}`),
    // A version never changes.
    staleTime: Number.POSITIVE_INFINITY,
  });

export const auditQuery = (before: number | undefined, filter: AuditFilter = {}) =>
  queryOptions({
    queryKey: ["audit", before ?? 0, filter],
    queryFn: () => request<AuditView>("/audit", { query: { before, limit: 50, ...filter } }),
    placeholderData: keepPreviousData,
  });

export const tokensQuery = queryOptions({
  queryKey: ["tokens"],
  queryFn: () => request<{ tokens: readonly TokenView[] }>("/tokens"),
});

/** Call this after a change of rules: refetches everything that shows them. */
export async function rulesChanged(): Promise<void> {
  await Promise.all(
    ["rules", "versions", "audit", "stats", "load", "spend"].map((key) =>
      queryClient.invalidateQueries({ queryKey: [key] }),
    ),
  );
}
